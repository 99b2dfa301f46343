# The one door for people. `make` alone says what there is.

APP ?= examples/magtag/config.ru
ARGS ?=
RUBY ?= ruby
DURATION ?= 600

TARGET := $(or $(CARGO_TARGET_DIR),target)
NATIVE := lib/oribi/native.so
STEP := tools/step
# The engine for mruby, where its library is installed (libmruby-dev).
FEATURES := $(if $(wildcard /usr/include/mruby.h),--features oribi/mruby)
# Workspaces of their own.
LAB := --manifest-path lab/Cargo.toml
CEILING := bench/ceilings/hyper_hello
CEILING_TARGET := $(or $(CARGO_TARGET_DIR),$(CEILING)/target)
# What `make lab` measures.
SCENARIOS ?= hello stuck kill burst
SERVERS ?= oribi,puma,unicorn

# cargo's own place comes last: a cargo that is already in PATH was chosen by somebody.
export PATH := $(PATH):$(HOME)/.cargo/bin
export RUBY

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help serve build build-only test stress soak lab lab-setup lab-build lab-test bench lint fmt clippy \
  unit loom blackbox examples fuzz mruby-check docs docs-options clean test-trixie test-sid \
  stack stack-stop stack-pids stack-ab stack-proof stack-stuck

help: ## this list
	@echo "Oribi, a Ruby application server. What there is to make:"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
	  awk -F'|' '{ printf "  %-18s %s\n", $$1, $$2 }'
	@echo
	@echo "  make serve APP=path/to/config.ru ARGS='-w 4 -p 3000' serves yours."

serve: build ## install what is missing, build, serve examples/magtag (or APP=...) on 127.0.0.1:9292
	@echo "== serving $(APP)"
	@exec $(RUBY) exe/oribi $(ARGS) $(APP)

# Words such as WEB=nginx go on to the script as they are.
STACK = @$(RUBY) examples/stack/stack $(1) $(foreach word,$(2),$(if $($(word)),$(word)='$($(word))'))

stack: ## MagTag behind a web server (WEB=lighttpd DOOR=scgi N=4 MODE=workers SOCKET=unix)
	$(call STACK,start,WEB DOOR N MODE SOCKET)

stack-stop: ## end it, or only Oribi (WHAT=vms) or the web server (WHAT=httpd)
	$(call STACK,stop,WHAT)

stack-pids: ## show its processes
	$(call STACK,pids)

stack-ab: ## load it with ab (COUNT=5000 FILE=log/ab.out)
	$(call STACK,ab,COUNT FILE)

stack-proof: ## 1,000 clients at once through every such stack, and the table of it (minutes)
	$(call STACK,proof,WEB DOOR N MODE SOCKET)

stack-stuck: ## how long quick requests wait beside slow ones, behind one queue and behind N
	$(call STACK,stuck,WEB DOOR N MODE SOCKET)

build: ## install what is missing and build the server and its Ruby extension
	@tools/setup build
	@$(MAKE) --no-print-directory build-only

# A running server has the extension mapped: it is replaced by a rename, never written over.
build-only:
	@cargo build --locked --release -p oribi -p oribi-ruby $(FEATURES)
	@crates/shim/build $(TARGET)/release/oribi-shim
	@cmp -s $(TARGET)/release/liboribi_ruby.so $(NATIVE) || { \
	  cp $(TARGET)/release/liboribi_ruby.so $(NATIVE).$$$$ && mv -f $(NATIVE).$$$$ $(NATIVE); }

test: ## install what the tests need, build, run everything that must pass
	@tools/setup test
	@$(STEP) "rustfmt" $(MAKE) --no-print-directory fmt
	@$(STEP) "build" $(MAKE) --no-print-directory build-only
	@$(STEP) "clippy" $(MAKE) --no-print-directory clippy
	@$(STEP) "cargo test" $(MAKE) --no-print-directory unit
	@$(STEP) "the lab" $(MAKE) --no-print-directory lab-test
	@$(STEP) "loom models" $(MAKE) --no-print-directory loom
	@$(STEP) "the server from outside" $(MAKE) --no-print-directory blackbox
	@$(STEP) "the examples" $(MAKE) --no-print-directory examples
	@$(STEP) "stress, 30 s" $(MAKE) --no-print-directory stress DURATION=30
	@$(STEP) "soak, short" test/soak 20 20 50
	@echo
	@echo "make test: everything passed"

# Another Debian in a folder; FILES="test/rack_test.rb" for some of the tests.
test-trixie: ## the tests from outside with Ruby 3.3 and Rack 3.1, as root (minutes, network)
	@tools/chroot trixie $(FILES)

test-sid: ## the same with Rack 3.2
	@tools/chroot sid $(FILES)

stress: ## kill everything at random under load (DURATION=600)
	@test/stress $(DURATION)

soak: ## 200 restarts, 200 rounds of recycling, 500 killed workers: nothing lost, nothing left (minutes)
	@test/soak 200 200 500

lab: ## measure this and other servers, in under ten minutes (SCENARIOS="fair stuck", SERVERS=)
	@tools/setup build
	@$(MAKE) --no-print-directory build-only lab-build
	@$(RUBY) exe/oribi lab run $(SCENARIOS) $(if $(SERVERS),--servers $(SERVERS))

lab-setup: ## install the other servers that the lab knows, as Debian packages
	@tools/setup lab

lab-build: ## build the lab
	@cargo build --locked --release $(LAB)

lab-test:
	@cargo test --locked --workspace $(LAB)

bench: ## see whether Oribi keeps its promises, against ceilings and other servers
	@tools/setup lab
	@$(MAKE) --no-print-directory build-only lab-build
	@cargo build --locked --release --manifest-path $(CEILING)/Cargo.toml
	@PATH="$(abspath $(CEILING_TARGET))/release:$$PATH" $(RUBY) exe/oribi lab run bench/*.toml

lint: fmt clippy ## rustfmt and clippy; rubocop and shellcheck where they are installed
	@if command -v rubocop >/dev/null; then rubocop --format simple; fi
	@if command -v shellcheck >/dev/null; then shellcheck tools/setup tools/step tools/chroot tools/mruby-check .ci/run crates/shim/build; fi

fmt:
	@cargo fmt --all --check
	@cargo fmt --all --check $(LAB)
	@cargo fmt --all --check --manifest-path $(CEILING)/Cargo.toml
	@cargo fmt --all --check --manifest-path bench/ceilings/hyper_client/Cargo.toml

clippy:
	@cargo clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings
	@cargo clippy --locked --workspace --all-targets $(LAB) -- -D warnings
	@cargo clippy --locked --all-targets --manifest-path $(CEILING)/Cargo.toml -- -D warnings

unit:
	@cargo test --locked --workspace $(FEATURES)

# Another target directory, or every change between models and product would build all anew.
loom:
	@RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom \
	  cargo test --locked -p wire --release --test loom

# A server that hangs must not make the tests hang: what takes longer than this is broken.
blackbox:
	@timeout --foreground 1500 $(RUBY) -Ilib -Itest -rminitest/autorun -e 'ARGV.each { |file| load file }' test/*_test.rb

examples:
	@$(RUBY) -Iexamples/magtag -rminitest/autorun -e 'ARGV.each { |file| load file }' \
	  examples/*/test/*_test.rb

fuzz: ## feed the parsers what nobody would send
	@fuzz/run

mruby-check: ## run the mruby gems under valgrind and, with a nightly compiler, AddressSanitizer (minutes)
	@command -v valgrind >/dev/null || { echo "valgrind is missing: apt-get install valgrind"; exit 1; }
	@tools/mruby-check

docs-options: build-only ## write docs/configuration.md's tables and examples/behind-* from the server's own
	@$(RUBY) tools/options-doc
	@$(RUBY) tools/web-server-examples

docs: ## the Rust documentation, in target/doc
	@cargo doc --workspace --no-deps --document-private-items

clean: ## remove what was built
	@cargo clean
	@rm -f $(NATIVE) $(NATIVE).*
