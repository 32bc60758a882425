#!/usr/bin/env bash
# Everything that is checked, in the order in which a mistake is cheapest. Continuous integration calls
# nothing else. Words given to it go to nextest: tests/run.sh one_shot
set -eu
cd "$(dirname "$0")/.."

TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
PATH=$TARGET/clients/tools/bin:$PATH

# step NAME COMMAND…: says what is done; where it fails, names it and ends.
step() {
    local name=$1 begun=$SECONDS
    shift
    printf '==> %s\n' "$name"
    if ! "$@"; then
        printf '\nmake test: the step "%s" failed\n' "$name" >&2
        exit 1
    fi
    printf '    %s s\n' $((SECONDS - begun))
}

if [ "$(id -u)" != 0 ]; then
    echo "make test: the suites run the real helper, as root; run it as root (sudo make test)" >&2
    exit 1
fi
mkdir -p "$TARGET"

# Clients and ordinary programs are installed while the compiler works.
step "the test runner and the dependency checker" packaging/prerequisites.sh tools
packaging/prerequisites.sh test >"$TARGET/prerequisites.log" 2>&1 &
prerequisites=$!
await_prerequisites() {
    wait "$prerequisites" && cat "$TARGET/prerequisites.log" && return
    cat "$TARGET/prerequisites.log" >&2
    return 1
}

step "formatting (make fmt puts it right)" cargo fmt --all --check
step "dependencies: bans, licences, sources" cargo-deny --locked --log-level error check bans licenses sources
step "the helper alone: its crates and its size" tests/helper.sh

# clippy is the compiler here: what it builds is what is tested, and a warning fails the build.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver
export CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__

step "the programs" packaging/build.sh
step "the probe" cargo rustc --locked --quiet --release -p gloveport-probe --bin gloveport-probe -- \
    -C target-feature=+crt-static
step "the suites" cargo nextest run --locked --release --workspace --no-run --cargo-quiet
step "what the suites need" await_prerequisites
step "the tests" cargo-nextest nextest run --locked --release --workspace --cargo-quiet "$@"
