#!/usr/bin/env bash
# What an auditor of the helper has to read: its crates are those of the reviewed list and no more than 36; its
# lines of code and its unsafe blocks are counted, so that nobody learns of their growth by surprise.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
MOST=36

reviewed=$(awk '!/^#/ {print $1, $2}' helper/crates.txt | sort)
built=$(cargo tree --quiet --locked -p gloveport-helper -e normal,build --prefix none |
    awk '$1 !~ /^gloveport-/ {print $1, substr($2, 2)}' | sort -u)
if ! diff <(echo "$reviewed") <(echo "$built") >&2; then
    echo "tests/helper.sh: the helper is not built from the crates of helper/crates.txt (<); review what" \
        "has changed (>), and put it there" >&2
    exit 1
fi
crates=$(echo "$built" | wc -l)
if [ "$crates" -gt "$MOST" ]; then
    echo "tests/helper.sh: $crates crates run with privilege; at most $MOST may" >&2
    exit 1
fi

# Lines that are neither empty nor comment, without tests.
lines() {
    find "$1" -name '*.rs' ! -name tests.rs ! -path '*/tests/*' -exec awk '
        FNR == 1 {skip = 0; test = 0}
        /^#\[cfg\(test\)\]/ {test = 1; next}
        test && /^mod tests? \{/ {skip = 1}
        test {test = 0; next}
        !skip && !/^ *(\/\/|$)/ {n++}
        END {print n + 0}' {} +
}
unsafe=$(grep -rhoE '\bunsafe \{' helper/src --include='*.rs' | wc -l)
echo "helper: $(lines helper/src) lines, contract: $(lines helper/contract/src) lines," \
    "$unsafe unsafe blocks, $crates crates"
