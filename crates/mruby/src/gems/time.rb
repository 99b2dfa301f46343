# The rest of Time.

class Time
  UNITS = { millisecond: 1_000, usec: 1, microsecond: 1, nsec: 0.001, nanosecond: 0.001 }.freeze

  class << self
    alias_method :__at, :at

    def at(seconds, fraction = 0, unit = :microsecond)
      return __at(seconds.to_i, seconds.usec) if seconds.is_a?(Time)
      factor = UNITS[unit] or raise ArgumentError, "unexpected unit: #{unit}"
      fraction == 0 ? __at(seconds) : __at(seconds, fraction * factor)
    end

    def iso8601(text) = __said(__iso8601(text), text)
    def xmlschema(text) = iso8601(text)
    def httpdate(text) = __said(__httpdate(text), text)

    def __said(said, text)
      raise ArgumentError, "invalid date: #{text.inspect}" unless said
      time = __at(said[0], said[1] / 1_000)
      said[2] ? time.utc : time
    end
  end

  # mruby counts microseconds.
  def nsec = usec * 1_000 unless method_defined?(:nsec)
  def tv_sec = to_i
  def tv_usec = usec
  def gmt_offset = utc_offset
  def gmtoff = utc_offset
end
