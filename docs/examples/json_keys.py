"""Prints the keys of a JSON object, one per line."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
print(*sorted(document), sep="\n")
