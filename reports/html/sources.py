"""The source of a case or behaviour: a ticket, a page, or a name in Spark's code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_TICKET = re.compile(r"SPARK-[0-9]+")
_TICKETS = "https://issues.apache.org/jira/browse/"


@dataclass(frozen=True)
class SourceLink:
    """A source with its label and, if it has one, its link."""

    label: str
    href: str | None
    """None for a name; otherwise always http or https."""

    @classmethod
    def of(cls, text: str) -> SourceLink:
        if _TICKET.fullmatch(text):
            return cls(text, _TICKETS + text)
        if not text.startswith(("https://", "http://")):
            return cls(text, None)
        try:
            parts = urlsplit(text)
        except ValueError:
            return cls(text, None)
        where = parts.fragment.replace("-", " ") or parts.path.strip("/").rpartition("/")[2]
        return cls(f"{parts.netloc.removeprefix('www.')} – {where}" if where else parts.netloc, text)
