# What can be done here. Everything is built in one profile, so that nothing is built twice.

.PHONY: help run build package reproducible test test-package test-vm soak fuzz bench lint fmt clean
.DEFAULT_GOAL := help

TARGET := $(or $(CARGO_TARGET_DIR),target)
# Further words for `gloveport up` or the benchmarks: make run ARGS="--listen 127.0.0.1:9000", make bench ARGS=call
ARGS ?=

help:
	@echo "make run          build, then try gloveport on this machine, in the foreground"
	@echo "make build        the four programs, in $(TARGET)/release"
	@echo "make package      the .deb and the .rpm, in dist/ (PROFILE=distribution: smaller, takes longer)"
	@echo "make reproducible a second build elsewhere, and whether it gives the same bytes; slow"
	@echo "make test         everything that continuous integration checks (needs root)"
	@echo "make test-package the part of it that installs the packages and boots a system with them"
	@echo "make test-vm      the .deb in an emulated machine with a stock kernel; slow, and in nothing else"
	@echo "make soak         what takes minutes and is in no other target; after make test"
	@echo "make fuzz         each fuzz target of the helper for FUZZ_SECONDS (60)"
	@echo "make bench        how fast it is beside its alternatives (root): a table, and docs/benchmarks.md"
	@echo "make lint         formatting, lints, dependencies"
	@echo "make fmt          format the sources"
	@echo "make clean        remove what was built"

# Built as the caller, run as root.
run: build
	@packaging/prerequisites.sh users
	@if [ "$$(id -u)" = 0 ]; then exec $(TARGET)/release/gloveport up $(ARGS); \
	elif command -v sudo >/dev/null; then exec sudo $(TARGET)/release/gloveport up $(ARGS); \
	else echo "make run: this needs root and there is no sudo; run it as root," \
	     "or take a first look with: $(TARGET)/release/gloveport up --same-user" >&2; exit 1; fi

build:
	@packaging/prerequisites.sh run
	@packaging/build.sh

package: build
	@packaging/prerequisites.sh package
	@packaging/package.sh
	@ls dist/*.deb dist/*.rpm

reproducible:
	@packaging/reproducible.sh

test:
	@tests/run.sh

test-package:
	@tests/run.sh packaging::

test-vm: build
	@packaging/test-vm.sh

soak:
	@cargo nextest run --locked --release -p gloveport-tests --run-ignored only

fuzz:
	@packaging/prerequisites.sh fuzz
	@tests/fuzz.sh

bench: build
	@packaging/prerequisites.sh bench
	@cargo build --locked --quiet --release -p gloveport-probe
	@cargo bench --locked --quiet -p gloveport-tests --bench gloveport-bench -- $(ARGS)

lint:
	@packaging/prerequisites.sh tools
	@tests/lint.sh

fmt:
	@cargo fmt --all

clean:
	@cargo clean
