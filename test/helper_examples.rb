# frozen_string_literal: true

require "helper_case"

module Helper
  # Tests of programs that the server is a part of: the examples of the package `oribi`.
  class ExampleCase < Case
    class << self
      # The class's program, by its name.
      def program(name)
        @program = name
      end

      def shared
        bind = { "BIND" => "tcp://127.0.0.1:0", "ORIBI_LIB" => LIB }
        @shared ||= Server.new(:program, executable: build(@program), app: nil, env: bind).ready
      end

      private

      # As `cargo test` builds it, so that there is little to do here.
      def build(name)
        words = %w[cargo build --locked --quiet --package oribi --features mruby --example]
        system(*words, name, chdir: ROOT, exception: true)
        target = ENV.fetch("CARGO_TARGET_DIR", File.join(ROOT, "target"))
        File.expand_path("debug/examples/#{name}", File.expand_path(target, ROOT))
      end
    end

    # What a path answers, with these headers.
    def ask(path, method: :get, **headers)
      Net::HTTP.start("127.0.0.1", port, max_retries: 0, read_timeout: PATIENCE) do |http|
        http.send(method, path, *([""] if method == :post), headers)
      end
    end

    # The fields of foolsgold's answer.
    def fields(path)
      response = ask(path)
      assert_equal "200", response.code, response.body
      response.body.lines(chomp: true).to_h { |line| line.split(" ", 2) }
    end
  end
end
