# The rest of JSON: to_json is generate, but for objects that JSON does not know.

module JSON
  def self.dump(value, io = nil)
    text = generate(value)
    return text unless io
    io.write(text)
    io
  end

  def self.load(source, _proc = nil, options = {})
    source = source.read if source.respond_to?(:read)
    source.nil? || source.empty? ? nil : parse(source, options)
  end

  def self.[](value, options = {}) = value.is_a?(String) ? parse(value, options) : generate(value, options)
end

class Object
  def to_json(*) = JSON.generate(to_s)
end

[Hash, Array, String, Symbol, Integer, Float, NilClass, TrueClass, FalseClass].each do |type|
  type.define_method(:to_json) { |*| JSON.generate(self) }
end
