# frozen_string_literal: true

require "digest"
require "fileutils"
require "tmpdir"
require "oribi/errors"
require "oribi/version"

module Oribi
  # The command `oribi lab`: becomes the binary `oribi-lab`, which measures any Ruby server.
  module Lab
    ROOT = File.expand_path("../..", __dir__)
    HOME = File.join(ROOT, "lab")
    EXE = File.join(ROOT, "exe")
    CHECKOUT = File.exist?(File.join(ROOT, "Makefile"))
    # Where `make lab-build` leaves it.
    BUILT = File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(HOME, "target")), "release/oribi-lab")
    private_constant :ROOT, :HOME, :EXE, :CHECKOUT, :BUILT

    module_function

    def start(arguments)
      exec(environment, [path, "oribi lab"], *arguments)
    rescue Error, SystemCallError => error
      abort "oribi lab: #{error.message}"
    end

    # To the lab Oribi is a server like any other; it finds this one before any other of that name.
    def environment
      path = [EXE, ENV.fetch("PATH", "")].join(File::PATH_SEPARATOR)
      { "ORIBI_LAB_HOME" => HOME, "PATH" => path }
    end

    # The binary's path, or an error that says how to get one.
    def path
      given = ENV.fetch("ORIBI_LAB_BINARY", nil)
      if given || CHECKOUT
        remedy = given ? "ORIBI_LAB_BINARY names it" : "run `make lab-build` in #{ROOT}"
        raise Error, "#{given || BUILT} is not there: #{remedy}" unless File.file?(given || BUILT)

        return given || BUILT
      end

      kept = File.join(cache, "oribi-lab")
      build(kept) unless File.file?(kept)
      kept
    end

    # One folder for each state of the sources: another version never runs by mistake.
    def cache
      base = ENV.fetch("XDG_CACHE_HOME", "")
      base = File.join(Dir.home, ".cache") unless base.start_with?("/")
      sources = Dir[File.join(HOME, "{Cargo.toml,Cargo.lock,**/*.rs,templates/*}")]
      digest = Digest::SHA256.hexdigest(sources.map { |file| Digest::SHA256.file(file) }.join)
      File.join(base, "oribi", "lab-#{VERSION}-#{digest[0, 12]}")
    end

    # A gem is installed by many who will never measure anything, so the lab is built when it is
    # first asked for.
    def build(kept)
      warn "oribi lab: building it, once; this takes a minute or two"
      FileUtils.mkdir_p(File.dirname(kept))
      Dir.mktmpdir("build", File.dirname(kept)) do |target|
        command = ["cargo", "build", "--release", "--locked", "--bin", "oribi-lab",
                   "--manifest-path", File.join(HOME, "Cargo.toml"), "--target-dir", target]
        case system(*command, out: :err)
        when nil then raise Error, "building it needs cargo: https://rustup.rs has it"
        when false then raise Error, "it does not build (see above)"
        end
        File.rename(File.join(target, "release/oribi-lab"), kept)
      end
    end
  end
end
