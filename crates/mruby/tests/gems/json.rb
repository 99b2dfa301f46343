JSON.parse('{"a":[1,-2.5,true,false,null,"x\\u00e9\\n"],"b":{}}') # => {"a" => [1, -2.5, true, false, nil, "x\u00e9\n"], "b" => {}}
JSON.parse('{"a":{"b":1}}', symbolize_names: true) # => {a: {b: 1}}
JSON.parse(" 2 ") # => 2
JSON.parse('"x"') # => "x"
JSON.parse("1234567890123456") # => 1234567890123456
JSON.parse("1e3") # => 1000.0
JSON.parse('{"a":1,"a":2}') # => {"a" => 2}
JSON.parse('{"z":1,"a":2}').keys # => ["z", "a"]
JSON.parse('{"a":1}').keys[0].frozen? # => true
JSON.parse("{") # raises JSON::ParserError
JSON.parse("") # raises JSON::ParserError
JSON.parse("[1,]") # raises JSON::ParserError
JSON.parse("NaN") # raises JSON::ParserError
JSON.parse("[1] 2") # raises JSON::ParserError
JSON.parse(nil) # raises TypeError
JSON.parse("[" * 101 + "]" * 101) # raises JSON::NestingError
JSON.parse("[" * 100 + "]" * 100).size # => 1
JSON.parse("[[[1]]]", max_nesting: 2) # raises JSON::NestingError
JSON.parse("[" * 110 + "]" * 110, max_nesting: false).size # => 1
JSON::NestingError.ancestors.include?(JSON::ParserError) # => true
JSON.generate({"a" => [1, 2.5, nil, true, false], :b => "x", 1 => {}}) # => '{"a":[1,2.5,null,true,false],"b":"x","1":{}}'
JSON.generate("\"\\\n\u0001/\u00e9") # => "\"\\\"\\\\\\n\\u0001/\u00e9\""
JSON.generate([]) # => "[]"
JSON.generate(nil) # => "null"
JSON.generate([1.0, 0.1, 1e20, 1.5e-7, 100.0]) # => "[1.0,0.1,1.0e+20,1.5e-07,100.0]"
JSON.generate(0.0 / 0.0) # raises JSON::GeneratorError
JSON.generate([1.0 / 0]) # raises JSON::GeneratorError
JSON.generate("\xff") # raises JSON::GeneratorError
a = []; a << a; JSON.generate(a) # raises JSON::NestingError
JSON.pretty_generate({"a" => [1, {"b" => nil}], "c" => 1}) # => "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": 1\n}"
JSON.dump([1, "a"]) # => '[1,"a"]'
JSON.dump(nil) # => "null"
JSON.load("[1]") # => [1]
JSON.load(nil) # => nil
{a: 1}.to_json # => '{"a":1}'
[nil, :a].to_json # => '[null,"a"]'
"x".to_json # => '"x"'
1.to_json + 1.5.to_json + nil.to_json + true.to_json + :s.to_json # => '11.5nulltrue"s"'
c = Class.new { def to_json(*args) = { kind: "own" }.to_json(*args) }; JSON.generate([c.new, { c: c.new }]) # => '[{"kind":"own"},{"c":{"kind":"own"}}]'
c = Class.new { def to_s = "plain" }; [c.new].to_json # => '["plain"]'
c = Class.new { def to_json(*) = raise(IOError, "no") }; JSON.generate([c.new]) # raises IOError
(begin; JSON.parse("{\n\"a\": x}"); rescue JSON::ParserError => e; e.message.include?("x") || e.message.include?("line 2"); end) # => true
