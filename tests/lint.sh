#!/usr/bin/env bash
# Formatting, lints and dependencies.
set -eu
cd "$(dirname "$0")/.."

echo "==> formatting"
cargo fmt --all --check
echo "==> lints"
cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
echo "==> dependencies"
"${CARGO_TARGET_DIR:-target}/clients/tools/bin/cargo-deny" --locked --log-level error check bans licenses sources
echo "==> the helper alone"
tests/helper.sh
