# frozen_string_literal: true

# A fixed number of turns of a Ruby loop: a request that computes. The default makes about 5 ms on
# a core of today; LAB_TURNS sets another, the same for all servers that are compared.
require_relative "lab"

turns = Integer(ENV.fetch("LAB_TURNS", 150_000))

run Lab.around(lambda { |_env|
  sum = i = 0
  sum += i ^ (sum & 0xff) while (i += 1) < turns
  Lab.answer(sum.to_s)
})
