#!/usr/bin/env bash
# Each fuzz target of helper/fuzz for FUZZ_SECONDS, or those that are named: tests/fuzz.sh packets
#
# Inputs that reach something new are kept in the target directory, beside the committed corpus. One that makes a
# target panic is left in target/fuzz/artifacts/NAME, and the run fails; after the fault is gone it belongs into
# helper/fuzz/corpus/NAME under its right word, where `make test` replays it for good.
set -eu
cd "$(dirname "$0")/.."

TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
SECONDS_EACH=${FUZZ_SECONDS:-60}
TARGETS=(packets catalogs signatures arguments)
if [ $# -gt 0 ]; then TARGETS=("$@"); fi

# The address sanitizer needs a nightly compiler, and would find little: nothing that is fuzzed holds an unsafe
# block. What is looked for are panics (overflow checks are on) and broken rules. Coverage comes from a pass that a
# stable compiler has.
fuzz() {
    "$TARGET/bin/cargo-fuzz" fuzz "$1" --fuzz-dir helper/fuzz --sanitizer none --target-dir "$TARGET/build" "${@:2}"
}

for name in "${TARGETS[@]}"; do
    fuzz build "$name"
done
for name in "${TARGETS[@]}"; do
    mkdir -p "$TARGET/corpus/$name" "$TARGET/artifacts/$name"
    printf '==> %s, for %s s\n' "$name" "$SECONDS_EACH"
    log=$TARGET/$name.log
    if ! fuzz run "$name" "$TARGET/corpus/$name" "helper/fuzz/corpus/$name" -- -max_total_time="$SECONDS_EACH" \
        -timeout=10 -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 \
        -artifact_prefix="$TARGET/artifacts/$name/" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        exit 1
    fi
    grep -E 'DONE|stat::number_of_executed_units|stat::new_units_added' "$log"
done
