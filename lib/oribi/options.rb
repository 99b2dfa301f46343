# frozen_string_literal: true

require "json"
require "oribi/binary"

module Oribi
  # The server's options, from the binary's one table, and what Ruby values are as texts.
  module Options
    module_function

    # The table: one Hash for each option.
    def table = all.fetch("options")

    # What is said of a mount and of nothing else, in the same form.
    def mount_words = all.fetch("mount")

    def all
      @all ||= JSON.parse(ENV["ORIBI_OPTIONS"] || IO.popen([Binary.path, "options"], &:read))
    end

    # A name without what people spell differently: `OobGC`, `oob_gc`, `oob-gc`.
    def plain(name) = name.to_s.delete("_-").downcase

    # A Ruby value as the server reads it.
    def text(value, option)
      return format("%04o", value) if option["kind"] == "mode" && value.is_a?(Integer)
      return value.to_i.to_s if value.is_a?(Float) && value == value.to_i

      value.to_s.strip
    end

    # The nearest of these names, or none that is near.
    def nearest(name, names)
      require "did_you_mean"
      DidYouMean::SpellChecker.new(dictionary: names).correct(name.to_s).first
    rescue LoadError
      nil
    end
  end
end
