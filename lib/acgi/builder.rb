# frozen_string_literal: true

module ACGI
  # What a simple config.ru needs where Rack is not installed: use, run, map.
  class Builder
    # The app of a rackup file.
    def self.load(path)
      text = File.read(path, encoding: Encoding::UTF_8).sub(/^__END__\n.*\z/m, "")
      # Outside of our modules, so that the file's constants are the app's.
      block = "ACGI::Builder.new.fill {\n#{text}\n}"
      eval(block, TOPLEVEL_BINDING, path, 0) # rubocop:disable Security/Eval
    rescue NameError => error
      raise unless error.message.match?(/constant Rack\b/)

      raise Error, "#{path}: #{error.message}, for Rack is not installed here: " \
                   "install it, or do without"
    end

    def initialize
      @layers = []
      @branches = []
    end

    def use(layer, *arguments, **options, &block)
      @layers << ->(app) { layer.new(app, *arguments, **options, &block) }
    end

    def run(app = nil, &block)
      @app = app || block
    end

    def map(path, &block)
      @branches << [path.chomp("/"), Builder.new.fill(&block)]
    end

    # The app of what the block says.
    def fill(&block)
      instance_eval(&block)
      to_app
    end

    def to_app
      raise Error, "config.ru runs nothing: it needs `run`" unless @app || @branches.any?

      app = @branches.empty? ? @app : Branches.new(@branches, @app)
      @layers.reverse.inject(app) { |inner, layer| layer.call(inner) }
    end

    # Chooses by the longest path that matches.
    class Branches
      NOT_FOUND = [404, { "content-type" => "text/plain" }.freeze, ["Not Found\n"].freeze].freeze

      def initialize(branches, otherwise)
        @branches = branches.sort_by { |path, _| -path.bytesize }
        @otherwise = otherwise
      end

      def call(env)
        name, path = env.values_at("SCRIPT_NAME", "PATH_INFO")
        prefix, app = @branches.find { |branch, _| Paths.under?(path, branch) }
        return @otherwise ? @otherwise.call(env) : NOT_FOUND.dup unless app

        inner = env.merge("SCRIPT_NAME" => name + prefix, "PATH_INFO" => path.delete_prefix(prefix))
        app.call(inner)
      end
    end
  end
end
