"""``variants``: other ways to run a case that may change its answer, with the reason."""

from __future__ import annotations

from conformance.language.nested import Key, Record
from conformance.language.shape import Text
from conformance.language.variant_names import MEANINGS

VARIANTS = Record(
    "variants",
    {
        "not": Key(
            Record(
                "the variants that are left out",
                {
                    name: Key(Text("a reason"), f"Why the answer may change where {what}.")
                    for name, what in MEANINGS.items()
                },
                at_least=1,
            ),
            "name of a variant and why it may change the answer",
            required=True,
        )
    },
)
