# Entry points for people and for CI. Everything is built by cargo.
SHELL := /bin/bash
CARGO ?= cargo
BUILT := $(or $(CARGO_TARGET_DIR),target)

.PHONY: all deps build demo test bench fuzz check-memory clean

all: build

# What the tests need; the demonstration and the build need less.
deps:
	tests/install-deps.sh test

# The collector (liblaggard.so) and the command (laggard), in target/release.
build:
	tests/install-deps.sh build
	$(CARGO) build --release -p laggard-collector -p laggard

# Records and analyses a real program, prints the report.
demo:
	tests/install-deps.sh demo
	$(MAKE) --no-print-directory build
	tests/demo.sh $(BUILT)/release $(BUILT)/demo

# Everything is built as the tests need it, once.
test: deps
	$(CARGO) build --release --workspace --all-targets
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --release --workspace --no-deps
	$(CARGO) test --workspace --release
	tests/checkers.sh quick

bench: deps build
	$(CARGO) run --release -p laggard-benchmarks -- all

# Hostile input for everything that reads files, guided by coverage, so long for each reader.
SECONDS ?= 60
fuzz: deps
	tests/fuzz/run.sh $(SECONDS) $(TARGETS)

# Valgrind and the sanitizers over readers and recorded programs: some minutes.
check-memory: deps build
	tests/checkers.sh memory threads sanitizers

clean:
	$(CARGO) clean
