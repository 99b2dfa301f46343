# Each line is true in mruby and in CRuby: crates/mruby/tests/gems.rs and test/mruby_gems_test.rb.
/b/ =~ "abc" # => 1
"abc" =~ /b(.)/; [$~[0], $1, $`, $', $&, $+, $2] # => ["bc", "c", "a", "", "bc", "c", nil]
"abc" =~ /x/; [$~, $1] # => [nil, nil]
"abc" !~ /x/ # => true
nil =~ /x/ # => nil
/x/ =~ nil # => nil
:abc =~ /c/ # => 2
/a/ === "cat" # => true
/a/ === :cat # => true
/a/ === 1 # => false
case "/users/42" when %r{\A/users/(\d+)\z} then $1.to_i end # => 42
/(?<y>\d+)-(?<m>\d+)/.match("on 2024-05!").to_a # => ["2024-05", "2024", "05"]
m = /(?<y>\d+)-(?<m>\d+)/.match("on 2024-05!"); [m[:y], m["m"], m[1], m[-1], m[9]] # => ["2024", "05", "2024", "05", nil]
m = /(?<y>\d+)-(?<m>\d+)?/.match("2024-"); [m.names, m.named_captures, m.captures] # => [["y", "m"], {"y" => "2024", "m" => nil}, ["2024", nil]]
m = /(b)(x)?/.match("abc"); [m.pre_match, m.post_match, m.begin(0), m.end(0), m.begin(2), m.offset(1)] # => ["a", "c", 1, 2, nil, [1, 2]]
m = /(b)(c)/.match("abcd"); [m.size, m.length, m.to_s, m.string, m.values_at(0, 2), m[0, 2], m[1..2]] # => [3, 3, "bc", "abcd", ["bc", "c"], ["bc", "b"], ["b", "c"]]
/(?<a>.)(.)?/.match("xy").inspect # => "#<MatchData \"xy\" a:\"x\">"
/(.)(z)?/.match("xy").inspect # => "#<MatchData \"x\" 1:\"x\" 2:nil>"
/b/.match("abcb", 2).begin(0) # => 3
/b/.match("abc", 9) # => nil
/b/.match(nil) # => nil
/b/.match("abc") { |m| m[0] * 2 } # => "bb"
/x/.match("abc") { |m| m[0] * 2 } # => nil
/a/.match("b")&.captures # => nil
/b/.match?("abc") # => true
/b/.match?("abc", 2) # => false
/b/.match?(nil) # => false
"abc".match(/b/)[0] # => "b"
"abc".match("b.")[0] # => "bc"
"abc".match?(/B/i) # => true
"abc".match?("b") # => true
:abc.match?(/c/) # => true
/(?<a>.)/.match("x")[:b] # raises IndexError
/(.)/.match("x").begin(3) # raises IndexError
"abc" =~ "b" # raises TypeError
/a/.match(1) # raises TypeError
Regexp.new("(") # raises RegexpError
Regexp.new(nil) # raises TypeError
"x".match?(/a/.source + "(") # raises RegexpError
Regexp.last_match # => nil
"abc" =~ /(b)/; [Regexp.last_match[0], Regexp.last_match(1)] # => ["b", "b"]
Regexp.new("a.b", Regexp::MULTILINE).match?("a\nb") # => true
Regexp.new("AB", true).match?("ab") # => true
Regexp.new(/a/i) == /a/i # => true
Regexp.compile("a") == /a/ # => true
/a/ == /a/i # => false
/a/.eql?(/a/) && /a/.hash == /a/.hash # => true
{/a/ => 1}[/a/] # => 1
/a.b#{1 + 1}/mix.source # => "a.b2"
/a/mix.options # => 7
/a/i.casefold? # => true
/a/.to_s # => "(?-mix:a)"
/a/mi.to_s # => "(?mi-x:a)"
/a/mix.to_s # => "(?mix:a)"
/a b/ix.inspect # => "/a b/ix"
Regexp.new("a/b").inspect # => "/a\\/b/"
/#{/a/i}b/.match?("Ab") # => true
/#{/a/i}b/.match?("AB") # => false
/(?<a>.)(?<b>.)/.names # => ["a", "b"]
/(?<a>.)(?<b>.)(?<a>.)/.named_captures # => {"a" => [1, 3], "b" => [2]}
Regexp.escape("a.b*c d\n[e]-{f}$") # => "a\\.b\\*c\\ d\\n\\[e\\]\\-\\{f\\}\\$"
Regexp.quote("+") # => "\\+"
Regexp.union("a.", /b/i, "c") # => /a\.|(?i-mx:b)|c/
Regexp.union(/x/i) # => /x/i
Regexp.union(%w[a b]) # => /a|b/
Regexp.union.match?("") # => false
"x=1, y=2".scan(/\w=\d/) # => ["x=1", "y=2"]
"x=1, y=2".scan(/(\w)=(\d)/) # => [["x", "1"], ["y", "2"]]
"x=1, y=2".scan(/(\w)=(\d)/) { |a, b| }; $1 # => "y"
r = []; "x=1, y=2".scan(/\w=\d/) { |a| r << a + $~.post_match }; r # => ["x=1, y=2", "y=2"]
"a.b.c".scan(".") # => [".", "."]
"aXbX".scan(/x/i).size # => 2
"abc".scan(/(?=(.))/) # => [["a"], ["b"], ["c"]]
"\u00e9a".scan(/./) # => ["\u00e9", "a"]
"\u00e9a".scan(//).size # => 3
"hello".sub(/l/, "L") # => "heLlo"
"hello".gsub(/l/, "L") # => "heLLo"
"hello".gsub(/[el]/, "e" => "3", "l" => "1") # => "h311o"
"hello".gsub(/[eo]/, "e" => 3) # => "h3ll"
"hello".gsub(/l/) { |l| l.upcase + $~.begin(0).to_s } # => "heL2L3o"
"hello".sub(/(?<first>.)/, '<\k<first>>') # => "<h>ello"
"hello".gsub(/(l)(l)?/, '[\1|\2|\0|\\\\]') # => "he[l|l|ll|\\]o"
"hello".sub(/ll/, "(\\`-\\')") # => "he(he-o)o"
"hello".gsub(/x*/, "-") # => "-h-e-l-l-o-"
"hello".gsub(/(?=l)/, ".") # => "he.l.lo"
"hello".gsub("l") { |x| x.upcase } # => "heLLo"
"hello".gsub("l", "l" => "r") # => "herro"
"hello".gsub("l", '<\0>') # => "he<l><l>o"
"hello".sub("l", "") # => "helo"
"hello".gsub(/z/, "") # => "hello"
"a\u00e9".gsub(/(.)/, '\1.') # => "a.\u00e9."
"hello".gsub(/l/).class # => Enumerator
"hello".gsub(/l/) { break 7 } # => 7
"a1b2".gsub(/\d/) { |d| (d.to_i * 2).to_s.gsub(/4/) { "four" } } # => "a2bfour"
"hello".gsub(/(?<x>l)/, '\k<y>') # raises IndexError
"hello".gsub(/l/, 1) # raises TypeError
"hello".gsub(/l/) { raise IOError } # raises IOError
s = "hello"; [s.sub!(/l/, "L"), s, s.sub!(/z/, "")] # => ["heLlo", "heLlo", nil]
s = "hello"; [s.gsub!(/l/) { "1" }, s, s.gsub!(/z/) { "" }] # => ["he11o", "he11o", nil]
s = "hello"; [s.gsub!("l", "L"), s, s.gsub!("z", "")] # => ["heLLo", "heLLo", nil]
"a, b;c".split(/[,;]\s*/) # => ["a", "b", "c"]
"a1b2c".split(/(\d)/) # => ["a", "1", "b", "2", "c"]
"abc".split(//) # => ["a", "b", "c"]
"abc".split(//, 2) # => ["a", "bc"]
"a,b,,".split(/,/) # => ["a", "b"]
"a,b,,".split(/,/, -1) # => ["a", "b", "", ""]
",a".split(/,/) # => ["", "a"]
"a,b,c".split(/,/, 2) # => ["a", "b,c"]
"".split(/,/) # => []
" a  b ".split(/\s+/) # => ["", "a", "b"]
"a b".split # => ["a", "b"]
"a,b".split(",") # => ["a", "b"]
"abc".split(/b/) { |x| x } # => "abc"
"abcb".index(/b/) # => 1
"abcb".index(/b/, 2) # => 3
"abcb".index(/b/, -1) # => 3
"abcb".index("b", 2) # => 3
"abcb".index(/x/) # => nil
"abcb".rindex(/b/) # => 3
"abcb".rindex(/b/, 2) # => 1
"abcb".rindex("b") # => 3
"hello"[/l+/] # => "ll"
"hello"[/(h)(.)/, 2] # => "e"
"hello"[/(?<v>[aeiou])/, "v"] # => "e"
"hello"[/x/] # => nil
"hello"[1] # => "e"
"hello"[1..2] # => "el"
"hello"[1, 2] # => "el"
"hello"["ell"] # => "ell"
"hello".slice(/l+/) # => "ll"
s = "hello"; s[/l+/] = "L"; s # => "heLo"
s = "hello"; s[/h(e)/, 1] = "E"; s # => "hEllo"
s = "hello"; s[0] = "J"; s[1, 2] = ""; s # => "Jlo"
s = "hello"; s[/z/] = "" # raises IndexError
s = "hello"; [s.slice!(/l+/), s] # => ["ll", "heo"]
s = "hello"; [s.slice!(0), s] # => ["h", "ello"]
"a=b=c".partition(/=/) # => ["a", "=", "b=c"]
"abc".partition(/x/) # => ["abc", "", ""]
"a=b=c".rpartition(/=/) # => ["a=b", "=", "c"]
"a=b".partition("=") # => ["a", "=", "b"]
"hello".start_with?(/h./) # => true
"hello".start_with?(/e/) # => false
"hello".start_with?("x", "he") # => true
%w[apple banana cherry].grep(/an/) # => ["banana"]
"\xff\xfe" .size # => 2
"a\tb".gsub(/\t/, "    ") # => "a    b"
"%41%42".gsub(/%(\h\h)/) { $1.to_i(16).chr } # => "AB"
"CamelCaseName".gsub(/([A-Z])/) { "_" + $1.downcase }.sub(/\A_/, "") # => "camel_case_name"
"snake_case".split("_").map(&:capitalize).join # => "SnakeCase"
"key: value" =~ /\A(\w+):\s*(.*)\z/ ? { $1 => $2 } : nil # => {"key" => "value"}
"foobar".gsub(/(?<!o)b|o(?=b)/, "_") # => "fo_bar"
"aab".match?(/\A(a)\1b\z/) # => true
