"""Judges sources of catalogues by the schema for editors, as an editor does: JSON Schema 2020-12.

    python catalog_schema.py SCHEMA-FILE SOURCE…      prints {SOURCE: [what is wrong, …], …}
"""

import json
import sys

import yaml
from jsonschema import Draft202012Validator


def main(schema, *sources):
    with open(schema, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    judged = {}
    for source in sources:
        with open(source, encoding="utf-8") as file:
            actions = [action for action in yaml.safe_load_all(file) if action is not None]
        judged[source] = [error.message for action in actions for error in validator.iter_errors(action)]
    print(json.dumps(judged))


main(*sys.argv[1:])
