# Entry points for people and for CI. Everything is built by cargo.
SHELL := /bin/bash
CARGO ?= cargo
BUILT := $(or $(CARGO_TARGET_DIR),target)
# For MPICH where its tools have the suffix .mpich. It shares what it needs with what is built for
# Open MPI (cargo 1.91 or newer; older ones build it anew). Libraries are in $(BUILT)/mpich/release.
FOR_MPICH := CARGO_TARGET_DIR=$(BUILT)/mpich CARGO_BUILD_BUILD_DIR=$(BUILT) MPICC=mpicc.mpich \
	$(CARGO) --config tests/mpich/cargo.toml
# Tests take turns where times matter, and mostly wait for launchers and ranks: more than there are
# cores.
TEST := RUST_TEST_THREADS=$$((2 * $$(nproc) + 1)) $(CARGO) test --workspace --release --no-fail-fast
# Whatever fails, the other steps run; in the end all that failed is listed.
FAILED := $(BUILT)/failed
STEP := tests/step.sh $(FAILED)

.PHONY: all deps build build-mpich build-whole install uninstall dist deb check-install demo pictures test steps-beside test-mpich test-slurm bench fuzz check-memory clean

all: build

# What the tests need; the demonstration and the build need less.
deps:
	tests/install-deps.sh test

# The command (laggard), the collector (liblaggard.so) and what its agents load (liblaggard_mpi.so),
# in target/release.
build:
	tests/install-deps.sh build
	$(CARGO) build --release -p laggard-collector -p laggard-mpi -p laggard

# The two libraries for MPICH, in target/mpich/release. The command finds them there.
build-mpich:
	tests/install-deps.sh mpich
	$(FOR_MPICH) build --release -p laggard-collector -p laggard-mpi

# Lays out what was built below PREFIX. Nothing there knows its place. Needs no root, and no cargo.
PREFIX ?= /usr/local
install uninstall:
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" analyzer/packaging/install.sh $@ $(BUILT)

# The licences of what is linked in.
$(BUILT)/third-party.txt: Cargo.lock
	$(CARGO) tree --edges normal --prefix none --format '{p} {l}' -p laggard -p laggard-collector \
		-p laggard-mpi | grep -v -e '(/' -e '^$$' | sed 's/ (\*)$$//' | sort -u >$@

# Like build, but the command is linked as a whole. That takes minutes more, and makes it smaller and faster.
build-whole:
	tests/install-deps.sh build
	$(CARGO) build --release -p laggard-collector -p laggard-mpi
	CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 $(CARGO) build --release -p laggard

# A tarball to unpack anywhere, and a Debian package, in $(BUILT)/dist: for every MPI that there is.
dist deb: build-whole $(if $(shell command -v mpicc.mpich),build-mpich) $(BUILT)/third-party.txt
	analyzer/packaging/dist.sh $(if $(filter deb,$@),debian,tarball) $(BUILT)

# What `make dist` and `make deb` make, on new systems without MPI, with one, and with both. Needs root.
check-install: dist deb
	tests/installs.sh $(BUILT)

# Records and analyses a real program, prints the report.
demo:
	tests/install-deps.sh demo
	$(MAKE) --no-print-directory build
	tests/demo.sh $(BUILT)/release $(BUILT)/demo

# The pictures of the book, from a real program.
pictures: deps build
	LAGGARD_PICTURES=analyzer/docs/pictures $(CARGO) test --release -p laggard-tests pictures::are_made_here

# The end-to-end tests take turns and wait for ranks, which leaves much of the machine to all other steps. These get
# no more than that. The shell of a recipe lets what it began in the background go on when it is interrupted.
define ALL_STEPS
$(CARGO) build --release --workspace --all-targets
@setsid $(STEP) "end-to-end tests" env $(TEST) --test end_to_end & tests=$$!; \
	trap 'kill -- -$$tests 2>/dev/null' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	nice -n 19 chrt --idle 0 $(MAKE) --no-print-directory steps-beside >$(BUILT)/beside.log 2>&1 \
		|| echo "the steps beside the end-to-end tests" >>$(FAILED); \
	wait $$tests || echo "the end-to-end tests" >>$(FAILED); cat $(BUILT)/beside.log
endef

define MPICH_BUILD
$(STEP) "clippy for MPICH" env $(FOR_MPICH) clippy --release -p laggard-collector -p laggard-mpi -- -D warnings
$(STEP) "build for MPICH" env $(FOR_MPICH) build --release -p laggard-collector -p laggard-mpi
endef

# What depends on the MPI, once more with MPICH; and what was built for one meets the other. Libraries
# are built as for the tests with Open MPI, or they would be built anew. 4 real ranks of MPICH on
# 2 cores take long, whatever records them. What must stay silent is a matter of the rules; what becomes of
# a trace does not depend on the MPI.
define MPICH_TESTS
$(STEP) "tests with MPICH" env LAGGARD_TEST_MPI=mpich $(TEST) \
	--test end_to_end -- patterns:: attacks:: symbols:: regions:: operation_maps:: settings:: \
	real_programs:: other_mpi:: baseline:: kill:: node_files:: soak:: per_rank:: clocks:: one_step:: \
	threads::a_late threads::odd samples::a_cause off_processor::a_wait \
	--skip _4 --skip _8 --skip near_miss
endef

# Everything is built as the tests need it, once.
test: deps
	@mkdir -p $(BUILT) && : >$(FAILED) && : >$(FAILED).alone
	$(ALL_STEPS)
	$(MPICH_TESTS)
	@$(STEP)

steps-beside:
	$(STEP) format $(CARGO) fmt --all --check
	$(STEP) clippy $(CARGO) clippy --release --workspace --all-targets -- -D warnings
	$(STEP) documentation env RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --release --workspace --no-deps
	$(STEP) tests env $(TEST) --lib --bins --test '[!e]*'
	$(STEP) "documentation tests" env $(TEST) --doc
	$(STEP) checkers tests/checkers.sh quick
	$(MPICH_BUILD)

test-mpich: deps
	@mkdir -p $(BUILT) && : >$(FAILED) && : >$(FAILED).alone
	$(MPICH_BUILD)
	$(MPICH_TESTS)
	@$(STEP)

# Jobs of a Slurm that runs on this machine for that time. Needs root.
test-slurm: build
	tests/install-deps.sh slurm
	$(CARGO) test --release -p laggard-tests slurm:: -- --ignored

bench: deps build
	$(CARGO) run --release -p laggard-benchmarks -- all

# Hostile input for everything that reads files, guided by coverage, so long for each reader.
SECONDS ?= 60
fuzz: deps
	tests/fuzz/run.sh $(SECONDS) $(TARGETS)

# Valgrind and the sanitizers over readers and recorded programs: some minutes.
# It tells which file a frame is in.
check-memory: export CARGO_PROFILE_RELEASE_DEBUG := line-tables-only
check-memory: deps build
	tests/checkers.sh memory threads sanitizers

clean:
	$(CARGO) clean
