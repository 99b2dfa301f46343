# frozen_string_literal: true

# Builds extension, binary and CGI shim, and puts them where Ruby finds them. Written by hand,
# because RubyGems' own builder for Rust makes libraries only.

require "fileutils"
require "mkmf"
require "rbconfig"

MINIMUM = Gem::Version.new("1.88")

def stop(message)
  abort "oribi cannot be built: #{message}"
end

cargo = find_executable("cargo") || stop("cargo is missing: install Rust #{MINIMUM} or newer, " \
                                         "with your system's packages or rustup")
found = `#{cargo} --version`[/\d+\.\d+(\.\d+)?/].to_s
if Gem::Version.new(found) < MINIMUM
  stop("cargo #{found} is too old: Rust #{MINIMUM} or newer is needed")
end

root = File.expand_path("../..", __dir__)
# The engine for mruby comes along where mruby's library is (Debian's libmruby-dev).
features = File.exist?("/usr/include/mruby.h") ? " --features oribi/mruby" : ""
lib = File.join(root, "lib/oribi")
extension = "native.#{RbConfig::CONFIG['DLEXT']}"
# Somebody who names a target directory wants to keep it; ours is only on the way.
named = ENV.fetch("CARGO_TARGET_DIR", nil)
target = named || File.join(Dir.pwd, "target")
remove_target = named ? "@true" : "rm -rf '#{target}'"

# The files belong beside the Ruby files that use them, in a checkout as in an installed gem.
# RubyGems calls `make clean`, `make` and `make install`.
File.write("Makefile", <<~MAKE)
  # Files that a running server has open are replaced by a rename, never written over.
  place = mkdir -p '$(dir $(2))' && cp '$(1)' '$(2).new' && mv -f '$(2).new' '$(2)'

  .PHONY: all install clean

  all:
  \tcd '#{root}' && RUBY='#{RbConfig.ruby}' CARGO_TARGET_DIR='#{target}' \\
  \t  '#{cargo}' build --release --locked -p oribi -p oribi-ruby#{features}
  \tcd '#{root}' && CARGO_TARGET_DIR='#{target}' \\
  \t  crates/shim/build '#{target}/release/oribi-shim' '#{cargo}'

  install: all
  \t$(call place,#{target}/release/liboribi_ruby.so,#{lib}/#{extension})
  \t$(call place,#{target}/release/oribi,#{lib}/bin/oribi)
  \t$(call place,#{target}/release/oribi-shim,#{lib}/bin/oribi-shim)
  \t#{remove_target}

  clean:
  \t#{remove_target}
MAKE
