"""Text, links and code as Markdown that GitHub, MkDocs and markdown-it read alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.html.addresses import SourceLink

_SPECIAL = re.compile(r"([\\*_\[\]#|~])")
_CODE = re.compile(r"(`[^`\n]+`)")


def text(words: str) -> str:
    """A sentence of a catalogue or a case; what it has in backticks stays code."""
    return "".join(part if _CODE.fullmatch(part) else _escaped(part) for part in _CODE.split(words))


def _escaped(part: str) -> str:
    plain = part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)


def code(words: str) -> str:
    """Code within a line."""
    return f"`{words}`" if "`" not in words else f"`` {words} ``"


def block(words: str, language: str = "python") -> str:
    """Lines of code."""
    return f"```{language}\n{words}\n```\n"


def link(words: str, href: str | None) -> str:
    """A link, or only its words if it leads nowhere."""
    return f"[{text(words)}]({href.replace(' ', '%20').replace(')', '%29')})" if href else text(words)


def sources(names: Iterable[str]) -> str:
    """Tickets and pages as links, and names in Spark's code as code."""
    found = (SourceLink.of(name) for name in names)
    return ", ".join(link(one.label, one.href) if one.href else code(one.label) for one in found)
