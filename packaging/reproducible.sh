#!/usr/bin/env bash
# Builds the programs twice, in two directories and with two homes of cargo, and compares them byte by byte.
#
#   packaging/reproducible.sh [PACKAGE…]     all four programs, or those of the named packages
#
# In the profile of what is published, or the one that PROFILE names: minutes, and longer for all four. The same
# compiler and the same machine; another one is for who has it.
set -eu
cd "$(dirname "$0")/.."
export PROFILE=${PROFILE:-distribution}
# What a calling cargo or test has set is no part of a build.
unset CARGO_TARGET_DIR RUSTC_WORKSPACE_WRAPPER RUSTFLAGS
crates=${CARGO_HOME:-$HOME/.cargo}/registry

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build DIRECTORY PACKAGE…: of what git would clone, and whatever is about to be committed.
build() {
    local place=$work/$1
    shift
    mkdir -p "$place/sources" "$place/cargo"
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$place/sources"
    # The crates are the same; that they lie elsewhere must not matter.
    ln -s "$crates" "$place/cargo/registry"
    CARGO_HOME=$place/cargo CARGO_NET_OFFLINE=true "$place/sources/packaging/build.sh" "$@"
}

cargo fetch --quiet --locked
build first "$@"
build the-second-of-them "$@"

differ=0
for program in gloveport gloveportd gloveport-helper gloveport-handler; do
    first=$work/first/sources/target/$PROFILE/$program
    second=$work/the-second-of-them/sources/target/$PROFILE/$program
    [ -e "$first" ] || continue
    if cmp --silent "$first" "$second"; then
        echo "same bytes: $program $(sha256sum <"$first" | cut -c1-16)"
    else
        echo "DIFFERENT:  $program" >&2
        differ=1
    fi
done
exit $differ
