# frozen_string_literal: true

# The API of scripts.
module ACGI
  class << self
    # Runs the block for every request with an object of Ruby's CGI class; `arguments` are those of
    # `CGI.new`. Behind `index.cgi` the script is loaded once and ends here: what stands behind
    # `each_cgi` runs in plain CGI only.
    def each_cgi(*arguments, **options, &block)
      raise ArgumentError, "ACGI.each_cgi needs a block" unless block

      script = Script.new(arguments, options, block)
      throw(:acgi_script, script) if @loading
      Command.of_script(ARGV) { script.call }
    end

    # The Script in a file.
    def load(path)
      @loading = true
      catch(:acgi_script) do
        Kernel.load(File.realpath(path))
        raise Error, "#{path} serves nothing: it never comes to ACGI.each_cgi { |cgi| ... }"
      end
    ensure
      @loading = false
    end
  end

  # A script that has been loaded: the block it gave to `each_cgi`.
  class Script
    def initialize(arguments, options, block)
      require "cgi"
      @arguments = arguments
      @options = options
      @block = block
      @directory = Dir.pwd
    rescue LoadError
      raise Error, "Ruby #{RUBY_VERSION} has no CGI class of its own: `gem install cgi`"
    end

    # The environment that a request's variables come into: as it was before the first.
    def environment = @environment ||= Variables.settle

    # One request, from ENV and standard input to standard output.
    def call
      Dir.chdir(@directory)
      @block.call(CGI.new(*@arguments, **@options))
    end
  end
end
