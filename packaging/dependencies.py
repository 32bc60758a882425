#!/usr/bin/env python3
"""Writes into a program which crates it was made of, in the format of cargo-auditable.

    packaging/dependencies.py PROGRAM

A scanner (`cargo audit bin`, trivy, syft) then finds a crate with a known fault in the installed file, where
there is no Cargo.lock. The section is .dep-v0: JSON, compressed by zlib. The crates come from `cargo tree`,
per program: what the daemon depends on must not be said of the helper.
"""

import json
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

PACKAGES = {
    "gloveport": "gloveport-cli",
    "gloveportd": "gloveportd",
    "gloveport-helper": "gloveport-helper",
    "gloveport-handler": "gloveport-handler",
}
# depth, name, version, and the source in parentheses where it is not crates.io: a path here.
LINE = re.compile(r"(\d+)(\S+) v(\S+)((?: \([^*)]*\))*)")


def tree(package, edges):
    """The crates of a package as {(name, version): is local}, the root first, and who depends on whom."""
    command = ["cargo", "tree", "--locked", "--offline", "-p", package, "-e", edges, "--prefix", "depth"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    crates, depends, above = {}, set(), []
    for line in filter(None, text.splitlines()):
        depth, name, version, source = LINE.match(line).groups()
        crate = (name, version)
        crates.setdefault(crate, "(/" in source)
        del above[int(depth):]
        if above:
            depends.add((above[-1], crate))
        above.append(crate)
    return crates, depends


def section(package):
    """What the section holds. Sorted, so that the same crates are the same bytes."""
    crates, depends = tree(package, "normal,build")
    linked, _ = tree(package, "normal,no-proc-macro")
    root = next(iter(crates))
    ordered = sorted(crates)
    entries = []
    for crate in ordered:
        entry = {"name": crate[0], "version": crate[1], "source": "local" if crates[crate] else "crates.io"}
        if crate not in linked:
            entry["kind"] = "build"
        needed = sorted(ordered.index(other) for one, other in depends if one == crate)
        if needed:
            entry["dependencies"] = needed
        if crate == root:
            entry["root"] = True
        entries.append(entry)
    return zlib.compress(json.dumps({"packages": entries}, separators=(",", ":")).encode(), 9)


def main():
    program = Path(sys.argv[1])
    with tempfile.NamedTemporaryFile() as file:
        file.write(section(PACKAGES[program.name]))
        file.flush()
        add = ["--add-section", f".dep-v0={file.name}", "--set-section-flags", ".dep-v0=noload,readonly"]
        subprocess.run(["objcopy", *add, program], check=True)


if __name__ == "__main__":
    main()
