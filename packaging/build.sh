#!/usr/bin/env bash
# Builds the four programs into the target directory, in the release profile or the one that PROFILE names.
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}

cargo build --quiet --profile "$profile" -p gloveportd -p gloveport-cli -p gloveport-handler

# The helper is static: it loads no library, and so nothing that an environment or a file could put in the
# place of one. The flag touches this one link and rebuilds nothing else.
cargo rustc --quiet --profile "$profile" -p gloveport-helper --bin gloveport-helper -- -C target-feature=+crt-static
