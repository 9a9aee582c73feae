"""Text as it is shown: whatever is in it, it cannot act, hide or turn the text beside it around."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from markupsafe import Markup

LONGEST = 2000
"""Characters of one value that are shown; of longer ones the length is told."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(value: Any) -> Any:
    """What a template prints for a value: control and direction characters by their names, never by their effect."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _INVISIBLE.sub(_named, value)


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and how long it is."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _named(found: re.Match[str]) -> str:
    char = found[0]
    return f"⟨{unicodedata.name(char, f'U+{ord(char):04X}').lower()}⟩"
