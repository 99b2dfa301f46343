# frozen_string_literal: true

require_relative "lib/oribi/version"

Gem::Specification.new do |spec|
  spec.name = "oribi"
  spec.version = Oribi::VERSION
  spec.summary = "A Rack application server in which every request waits in one fair queue"
  spec.description = "Oribi puts every request into one fair queue, from which the next idle " \
                     "worker takes it: no request sticks behind a slow one, and a worker that " \
                     "dies loses nothing that was waiting."
  spec.authors = ["The Oribi maintainers"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  # What it takes to build and to run, and nothing else: no tests, no benches. The lab is built
  # when it is first asked for; one of its apps serves MagTag's style sheet.
  sources = %w[exe/* lib/**/*.{rb,ru} ext/oribi/{Cargo.toml,extconf.rb,src/**/*.rs}
               crates/*/{Cargo.toml,build,build.rs,src/**/*} Cargo.{toml,lock} LICENSE README.md
               ARCHITECTURE.md CHANGELOG.md lab/Cargo.{toml,lock} lab/src/**/*.rs
               lab/load/{Cargo.toml,src/**/*.rs} lab/README.md lab/packages.txt
               lab/{apps,scenarios,servers,templates}/**/*
               examples/magtag/public/magtag.css]
  spec.files = Dir.chdir(__dir__) { Dir.glob(sources).select { |file| File.file?(file) } }
  spec.bindir = "exe"
  spec.executables = ["oribi"]
  spec.extensions = ["ext/oribi/extconf.rb"]
  spec.add_dependency "rack", ">= 2.2"
  spec.metadata["rubygems_mfa_required"] = "true"
end
