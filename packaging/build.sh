#!/usr/bin/env bash
# Builds the programs into the target directory, in the release profile or the one that PROFILE names.
#
#   packaging/build.sh [PACKAGE…]     all four, or those of the named packages
set -eu
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
packages=("$@")
[ $# -gt 0 ] || packages=(gloveportd gloveport-cli gloveport-handler gloveport-helper)

# What is published names no directory of the machine that built it, and is the same bytes wherever that was
# (packaging/reproducible.sh). A panic names its source file; nothing else does.
if [ "$profile" = distribution ]; then
    crates=${CARGO_HOME:-$HOME/.cargo}/registry/src
    export RUSTFLAGS="${RUSTFLAGS-} --remap-path-prefix=$crates=/crates --remap-path-prefix=$PWD=/gloveport"
fi

others=()
for package in "${packages[@]}"; do
    if [ "$package" != gloveport-helper ]; then others+=(-p "$package"); fi
done
if [ ${#others[@]} -gt 0 ]; then
    cargo build --locked --quiet --profile "$profile" "${others[@]}"
fi

# The helper is static: it loads no library, and so nothing that an environment or a file could put in the
# place of one. The flag touches this one link and rebuilds nothing else.
case " ${packages[*]} " in
*" gloveport-helper "*)
    cargo rustc --locked --quiet --profile "$profile" -p gloveport-helper --bin gloveport-helper -- \
        -C target-feature=+crt-static
    ;;
esac
