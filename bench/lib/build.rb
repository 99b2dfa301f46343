# frozen_string_literal: true

# Builds what the bench itself is made of.
module Bench
  module Build
    BENCH = File.expand_path("..", __dir__)
    TARGET = File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "#{BENCH}/target"))

    module_function

    def binary(name)
      "#{TARGET}/release/#{name}"
    end

    def all
      command = ["cargo", "build", "--quiet", "--release", "--locked",
                 "--manifest-path", "#{BENCH}/Cargo.toml", "--target-dir", TARGET]
      # The lock file is followed to the letter, or the ceiling would move with hyper's versions.
      system(*command) or raise "the bench does not build: #{command.join(" ")}"
    end
  end
end
