"""The JSON Schema of a case, generated from the shapes that read it: draft-07, which the YAML language server supports.

``conformance case schema`` prints it; ``python -m tools.regenerate`` writes the published one. It lets editors complete and check
single places of a file; only ``conformance case validate`` checks how they relate to each other.
"""

import json
from typing import Any

from conformance.language.case_file import CASE
from conformance.language.policy_file import POLICY_CASE, POLICY_KEYS
from conformance.language.reader import KEY, SCHEMA
from conformance.language.shape import Definitions

ADDRESS = "https://raw.githubusercontent.com/watermark-conformance/watermark-conformance/main/cases/schema.json"
"""Where editors find it, and what identifies it; version 1 of the case language only grows."""


def json_schema() -> dict[str, Any]:
    """Return the schema of a case file."""
    definitions: Definitions = {}
    # Distinguished as in the reader, so that an editor completes and reports the keys of only one kind of case.
    kinds = {
        "if": {"anyOf": [{"required": [key]} for key in POLICY_KEYS]},
        "then": POLICY_CASE.schema(definitions),
        "else": {
            "if": {"required": [KEY]},
            # A placeholder may stand for any value, so only the keys of such a file can be checked.
            "then": {
                "type": "object",
                "properties": {
                    KEY: SCHEMA,
                    **{key: {"description": entry.description} for key, entry in CASE.keys.items()},
                },
                "required": [key for key, entry in CASE.keys.items() if entry.required],
                "additionalProperties": False,
            },
            "else": CASE.schema(definitions),
        },
    }
    return {
        "$id": ADDRESS,
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A case of watermark-conformance",
        "description": "One case: streams, a query, and steps with their expected results. See docs/case-language.md.",
        **kinds,
        "definitions": dict(sorted(definitions.items())),
    }


def rendered() -> str:
    """Return the text of ``cases/schema.json``."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
