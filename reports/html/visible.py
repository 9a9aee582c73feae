"""Text that is safe to show: it cannot hide, or change the direction of, surrounding text."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from markupsafe import Markup

LONGEST = 2000
"""Characters of one value that are shown; longer values end with their length."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(value: Any) -> Any:
    """The value for a template: control and direction characters are replaced by their names."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _INVISIBLE.sub(_named, value)


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and its length."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _named(found: re.Match[str]) -> str:
    char = found[0]
    return f"⟨{unicodedata.name(char, f'U+{ord(char):04X}').lower()}⟩"
