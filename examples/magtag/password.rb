# frozen_string_literal: true

require "openssl"
require "securerandom"

module MagTag
  # Passwords are kept as scrypt hashes, parameters and salt beside them, so that the cost can be
  # raised later without locking anybody out.
  module Password
    COST = 16_384
    BLOCK = 8
    LANES = 1
    BYTES = 32

    module_function

    def hash(password)
      salt = SecureRandom.hex(16)
      ["scrypt", COST, BLOCK, LANES, salt, digest(password, salt, COST, BLOCK, LANES)].join("$")
    end

    def match?(password, stored)
      _, cost, block, lanes, salt, expected = stored.split("$")
      found = digest(password, salt, Integer(cost), Integer(block), Integer(lanes))
      OpenSSL.secure_compare(found, expected)
    end

    def digest(password, salt, cost, block, lanes)
      OpenSSL::KDF.scrypt(password, salt: salt, N: cost, r: block, p: lanes, length: BYTES)
                  .unpack1("H*")
    end

    # What a login with an unknown name is compared with, so that it takes as long as one with a
    # known name.
    NOBODY = hash(SecureRandom.hex(16)).freeze
  end
end
