SecureRandom.hex.size # => 32
SecureRandom.hex(4).match?(/\A\h{8}\z/) # => true
SecureRandom.hex == SecureRandom.hex # => false
SecureRandom.uuid.match?(/\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/) # => true
SecureRandom.uuid == SecureRandom.uuid # => false
SecureRandom.random_bytes.bytesize # => 16
SecureRandom.random_bytes(0) # => ""
SecureRandom.bytes(3).bytesize # => 3
SecureRandom.base64(6).match?(%r{\A[A-Za-z0-9+/]{8}\z}) # => true
SecureRandom.base64(1).end_with?("==") # => true
SecureRandom.urlsafe_base64.match?(/\A[\w-]{22}\z/) # => true
SecureRandom.urlsafe_base64(1, true).size # => 4
SecureRandom.alphanumeric.match?(/\A[A-Za-z0-9]{16}\z/) # => true
SecureRandom.alphanumeric(5).size # => 5
(0...100).all? { (0...3).include?(SecureRandom.random_number(3)) } # => true
(0...100).all? { (5..6).include?(SecureRandom.random_number(5..6)) } # => true
(0...100).all? { SecureRandom.random_number(5...6) == 5 } # => true
(0...100).all? { x = SecureRandom.random_number; x >= 0 && x < 1 && x.is_a?(Float) } # => true
(0...100).all? { x = SecureRandom.random_number(1.5..2.0); x >= 1.5 && x <= 2 } # => true
SecureRandom.random_number(0).class # => Float
SecureRandom.rand.class # => Float
SecureRandom.random_bytes(-1) # raises ArgumentError
