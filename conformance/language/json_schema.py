"""The JSON Schema of a case, drawn from the shapes that read it: draft-07, which the YAML language server knows.

``python -m conformance.language.json_schema > cases/schema.json`` writes the published one. It completes and checks what
one place in a file can hold; what parts of a case mean to each other only ``conformance validate`` knows.
"""

from __future__ import annotations

import json
from typing import Any

from conformance.language.case_file import CASE, MATRIX
from conformance.language.matrix import KEY
from conformance.language.policy_file import TELLING
from conformance.language.policy_shapes import POLICY_CASE
from conformance.language.shape import Definitions


def json_schema() -> dict[str, Any]:
    """The schema of one case file."""
    definitions: Definitions = {}
    # Told apart as the reader does, so that an editor completes and blames the keys of one of them, not of either.
    kinds = {
        "if": {"anyOf": [{"required": [key]} for key in TELLING]},
        "then": POLICY_CASE.schema(definitions),
        "else": {
            "if": {"required": [KEY]},
            # What stands for a value may stand anywhere: of such a file only the keys can be said.
            "then": {
                "type": "object",
                "properties": {
                    KEY: MATRIX.schema(definitions),
                    **{key: {"description": entry.meaning} for key, entry in CASE.keys.items()},
                },
                "required": [key for key, entry in CASE.keys.items() if entry.required],
                "additionalProperties": False,
            },
            "else": CASE.schema(definitions),
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A case of watermark-conformance",
        "description": "One case: streams, a query, steps and what each must show. See docs/case-language.md.",
        **kinds,
        "definitions": dict(sorted(definitions.items())),
    }


def rendered() -> str:
    """The text of ``cases/schema.json``."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(rendered(), end="")
