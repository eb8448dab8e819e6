# Entry points for people and for CI. Everything is built by cargo.
SHELL := /bin/bash
CARGO ?= cargo
BUILT := $(or $(CARGO_TARGET_DIR),target)
FOR_MPICH := CARGO_TARGET_DIR=$(BUILT)/mpich MPICC=mpicc.mpich $(CARGO)

.PHONY: all deps build build-mpich demo test test-mpich bench fuzz check-memory clean

all: build

# What the tests need; the demonstration and the build need less.
deps:
	tests/install-deps.sh test

# The collector (liblaggard.so) and the command (laggard), in target/release.
build:
	tests/install-deps.sh build
	$(CARGO) build --release -p laggard-collector -p laggard

# The same for MPICH where its tools have the suffix .mpich, in target/mpich/release.
build-mpich:
	tests/install-deps.sh mpich
	$(FOR_MPICH) build --release -p laggard-collector -p laggard

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

# What depends on the MPI, once more with MPICH; and what was built for one meets the other.
test-mpich: build-mpich
	$(FOR_MPICH) clippy --release -p laggard-collector -- -D warnings
	LAGGARD_TEST_MPI=mpich $(CARGO) test --workspace --release \
		--test patterns --test attacks --test symbols --test real_programs --test other_mpi

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
