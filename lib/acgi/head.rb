# frozen_string_literal: true

module ACGI
  # What stands before the body in the output of a CGI script (RFC 3875, section 6).
  class Head
    # Bytes after which it is no head.
    LIMIT = 64 * 1024
    END_OF_HEAD = /\r?\n\r?\n/
    FIELD = /\A([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*\z/m
    # Replies that have no body, and so no type.
    BODILESS = [204, 304].freeze

    # The status as a number, header names in lower case with a list of values, and where in the
    # text the body begins.
    attr_reader :status, :fields, :length

    # nil: this is not all of a head.
    def self.parse(text)
      place = text.index(END_OF_HEAD)
      place && new(text[0, place], place + $&.bytesize)
    end

    # Raises Error for what is no head.
    def initialize(text, length)
      @length = length
      @fields = {}
      lines = text.split(/\r?\n/)
      # A script that believes it speaks to the client itself.
      @status = lines.first.to_s[%r{\AHTTP/\d\.\d ([1-9]\d\d)\b}, 1]&.to_i
      lines.shift if @status
      lines.each { |line| keep(line) }
      raise Error, "the script wrote no header" if @fields.empty? && @status.nil?

      @status ||= @fields.key?("location") ? 302 : 200
    end

    def bodiless? = BODILESS.include?(@status)

    # As Rack wants them: several values in lines until Rack 3, in an Array since.
    def headers(release)
      none = bodiless? ? %w[content-type content-length] : []
      @fields.except(*none).transform_values do |values|
        next values.first if values.size == 1

        release >= 3 ? values : values.join("\n")
      end
    end

    private

    def keep(line)
      name, value = line.match(FIELD)&.captures
      if name.nil? || value.match?(/[\x00-\x08\x0a-\x1f\x7f]/n)
        raise Error, "the script wrote #{line[0, 80].inspect} where a header should be"
      end
      return (@fields[name.downcase] ||= []) << value unless name.casecmp?("status")

      @status = value[/\A[1-9]\d\d(?=\s|\z)/]&.to_i
      raise Error, "the script's status is #{value[0, 80].inspect}, not a number" unless @status
    end
  end
end
