"""Judges arguments by the input schemas that a server lists, as a client's validator does (JSON Schema 2020-12).

    python json_schema.py URL TOKEN CORPUS-FILE      {"tools": […], "cases": [{"tool": …, "arguments": …}, …]}
"""

import json
import re
import sys

from jsonschema import Draft202012Validator, ValidationError, validators


def pattern(_validator, expression, instance, _schema):
    # The schema's dialect is ECMA's, where `$` is the end. Python's `$` also stands before a last line break.
    expression = re.sub(r"(?<!\\)\$", r"\\Z", expression)
    if isinstance(instance, str) and not re.search(expression, instance):
        yield ValidationError(f"{instance!r} does not match {expression!r}")


Validator = validators.extend(Draft202012Validator, {"pattern": pattern})


def main(_url, _token, corpus):
    with open(corpus, encoding="utf-8") as file:
        corpus = json.load(file)
    schemas = {}
    for tool in corpus["tools"]:
        for schema in ("inputSchema", "outputSchema"):
            if schema in tool:
                Draft202012Validator.check_schema(tool[schema])
        schemas[tool["name"]] = Validator(tool["inputSchema"])
    print(json.dumps({"valid": [schemas[case["tool"]].is_valid(case["arguments"]) for case in corpus["cases"]]}))


main(*sys.argv[1:])
