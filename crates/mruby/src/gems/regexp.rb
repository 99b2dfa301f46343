# What of Regexp, MatchData and String calls blocks, or is only a turn of what Rust does.

class Regexp
  def self.compile(*args) = new(*args)

  def self.union(*patterns)
    patterns = patterns[0] if patterns.size == 1 && patterns[0].is_a?(Array)
    only = patterns.size == 1 && patterns[0].is_a?(Regexp) ? patterns[0].options : nil
    new(__union(patterns), only)
  end

  def self.last_match(group = nil) = group && $~ ? $~[group] : $~

  def match(text, at = 0)
    found = __search(text, at)
    found && block_given? ? yield(found) : found
  end
end

class MatchData
  def [](group, count = nil)
    return to_a[group, count] if count
    group.is_a?(Range) ? to_a[group] : __group(group)
  end

  def length = size
  def to_s = self[0]
  def offset(group) = [self.begin(group), self.end(group)]
  def byteoffset(group) = offset(group)
  def values_at(*groups) = groups.map { |group| self[group] }

  def named_captures
    names.each_with_object({}) { |name, all| all[name] = self[name] }
  end

  def ==(other)
    other.is_a?(MatchData) && string == other.string && regexp == other.regexp &&
      offset(0) == other.offset(0)
  end

  def inspect
    labels = names.empty? ? (1...size).to_a : names
    groups = labels.map { |label| " #{label}:#{self[label].inspect}" }
    "#<MatchData #{self[0].inspect}#{groups.join}>"
  end
end

class String
  alias_method :__text_at, :[]
  alias_method :__text_set, :[]=
  %i[sub gsub split index rindex slice! partition rpartition start_with?].each do |name|
    alias_method :"__text_#{name}", name
  end

  def =~(pattern)
    raise TypeError, "type mismatch: String given" if pattern.is_a?(String)
    pattern =~ self
  end

  def match(pattern, at = 0, &block) = __pattern(pattern).match(self, at, &block)
  def match?(pattern, at = 0) = __pattern(pattern).match?(self, at)

  def scan(pattern)
    pattern = Regexp.new(Regexp.escape(pattern)) unless pattern.is_a?(Regexp)
    return pattern.__scan(self) unless block_given?
    at, found = 0, nil
    while (one = pattern.__search(self, at))
      found = one
      yield found.size == 1 ? found[0] : found.captures
      at = found.__next
    end
    found&.__remember
    self
  end

  def sub(*args, &block)
    return __text_sub(*args, &block) unless args[0].is_a?(Regexp) || args[1].is_a?(Hash)
    __substitute(args, false, &block) || dup
  end

  def gsub(*args, &block)
    return __text_gsub(*args, &block) unless args[0].is_a?(Regexp) || args[1].is_a?(Hash)
    return to_enum(:gsub, *args) if args.size == 1 && !block
    __substitute(args, true, &block) || dup
  end

  def sub!(*args, &block)
    changed = args[0].is_a?(Regexp) ? __substitute(args, false, &block) : sub(*args, &block)
    changed && changed != self ? replace(changed) : (changed && args[0].is_a?(Regexp) ? self : nil)
  end

  def gsub!(*args, &block)
    changed = args[0].is_a?(Regexp) ? __substitute(args, true, &block) : gsub(*args, &block)
    changed && changed != self ? replace(changed) : (changed && args[0].is_a?(Regexp) ? self : nil)
  end

  def split(pattern = nil, limit = 0, &block)
    parts = pattern.is_a?(Regexp) ? pattern.__split(self, limit) : __text_split(pattern, limit)
    return parts unless block
    parts.each(&block)
    self
  end

  def index(pattern, at = 0)
    return __text_index(pattern, at) unless pattern.is_a?(Regexp)
    found = pattern.__search(self, at)
    found && found.begin(0)
  end

  def rindex(pattern, at = bytesize)
    return __text_rindex(pattern, at) unless pattern.is_a?(Regexp)
    found = pattern.__rsearch(self, at > bytesize ? bytesize : at)
    found && found.begin(0)
  end

  def [](first, *rest)
    return __text_at(first, *rest) unless first.is_a?(Regexp)
    found = first.__search(self, 0)
    found && found[rest[0] || 0]
  end

  def slice(*args) = self[*args]

  def []=(first, *rest)
    return __text_set(first, *rest) unless first.is_a?(Regexp)
    group = rest.size > 1 ? rest[0] : 0
    found = first.__search(self, 0)
    raise IndexError, "regexp not matched" unless found && found[group]
    replace(byteslice(0, found.begin(group)) + rest[-1] + __rest(found.end(group)))
    rest[-1]
  end

  def slice!(*args)
    return __text_slice!(*args) unless args[0].is_a?(Regexp)
    found = args[0].__search(self, 0)
    group = args[1] || 0
    return unless found && found[group]
    replace(byteslice(0, found.begin(group)) + __rest(found.end(group)))
    found[group]
  end

  def partition(pattern)
    return __text_partition(pattern) unless pattern.is_a?(Regexp)
    found = pattern.__search(self, 0)
    found ? [found.pre_match, found[0], found.post_match] : [dup, "", ""]
  end

  def rpartition(pattern)
    return __text_rpartition(pattern) unless pattern.is_a?(Regexp)
    found = pattern.__rsearch(self, bytesize)
    found ? [found.pre_match, found[0], found.post_match] : ["", "", dup]
  end

  def start_with?(*starts)
    starts.any? do |start|
      next __text_start_with?(start) unless start.is_a?(Regexp)
      found = Regexp.new("\\A(?:#{start})").__search(self, 0)
      !found.nil?
    end
  end

  def __pattern(pattern) = pattern.is_a?(Regexp) ? pattern : Regexp.new(pattern)
  def __rest(at) = byteslice(at, bytesize - at)

  def __substitute(args, all)
    pattern, by = args
    pattern = Regexp.new(Regexp.escape(pattern)) unless pattern.is_a?(Regexp)
    return pattern.__sub(self, by, all) if args.size == 2
    raise ArgumentError, "wrong number of arguments (given #{args.size}, expected 2)" unless block_given?
    text = dup
    out, at, copied, found = "", 0, 0, nil
    while at <= text.bytesize && (one = pattern.__search(text, at))
      found = one
      out << text.byteslice(copied, found.begin(0) - copied) << yield(found[0]).to_s
      copied = found.end(0)
      at = found.__next
      break unless all
    end
    found&.__remember
    found && (out << text.__rest(copied))
  end
end

class Symbol
  def =~(pattern) = to_s =~ pattern
  def match(*args) = to_s.match(*args)
  def match?(*args) = to_s.match?(*args)
end

class NilClass
  def =~(_pattern) = nil
end

class Object
  def !~(pattern) = !(self =~ pattern)
end
