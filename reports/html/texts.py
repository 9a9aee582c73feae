"""Texts of pages: Markdown, what may be shown, durations, and times as the case writes them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from html import escape
from typing import Any, Self

from markupsafe import Markup

from conformance.core.case import Case
from conformance.core.spark_types import DataType
from conformance.core.values import NotAValue, canonical, show
from reports.analysis.step_table import Block, Line, StepTable
from reports.html.addresses import SourceLink
from reports.results.records import TargetRecord

_SPECIAL = re.compile(r"([\\*_\[\]#|~])")
_CODE = re.compile(r"(`[^`\n]+`)")


def text(words: str) -> str:
    """Escape a sentence of a catalogue or a case; what it has in backticks stays code."""
    return "".join(
        part if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", escape(part, quote=False))
        for part in _CODE.split(words)
    )


def in_code(words: str) -> Markup:
    """Return a sentence of a catalogue as HTML; what it has in backticks is code."""
    parts = (
        Markup("<code>{}</code>").format(part[1:-1]) if _CODE.fullmatch(part) else part for part in _CODE.split(words)
    )
    return Markup("").join(parts)


def code(words: str) -> str:
    return f"`{words}`" if "`" not in words else f"`` {words} ``"


def block(words: str) -> str:
    return f"```python\n{words}\n```\n"


def link(words: str, href: str | None) -> str:
    return f"[{text(words)}]({href.replace(' ', '%20').replace(')', '%29')})" if href else text(words)


def sources(names: Iterable[str]) -> str:
    """Write tickets and pages as links, and names in Spark's code as code."""
    links = (SourceLink.of(name) for name in names)
    return ", ".join(link(source.label, source.href) if source.href else code(source.label) for source in links)


def fact(value: object, *names: object) -> Markup:
    """Mark a value with the name of the fact that it states: every page that states the fact must state the same.

    ``names``: ``"changes", before, after`` → ``changes 3.5.9 4.3.0``; numbers are written with a comma for thousands.
    """
    name = " ".join(part.title if isinstance(part, TargetRecord) else str(part) for part in names)
    shown = f"{value:,}" if isinstance(value, int) else value
    return Markup('<span data-fact="{}">{}</span>').format(name, shown)


def capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


LONGEST = 2000
"""The number of characters of a value that are shown; longer values end with their length."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(value: Any) -> Any:
    """Prepare a value for a template: control and direction characters are replaced by their names."""
    # What is printable, as most is, has none of them.
    is_shown = not isinstance(value, str) or isinstance(value, Markup) or value.isprintable()
    return value if is_shown else _INVISIBLE.sub(_named, value)


def cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"


def _named(match: re.Match[str]) -> str:
    char = match[0]
    return f"⟨{unicodedata.name(char, f'U+{ord(char):04X}').lower()}⟩"


def duration(milliseconds: int) -> str:
    """Return ``4.3 s``, ``3 min 4 s`` or ``2 h 5 min``."""
    tenths = max(milliseconds + 50, 0) // 100
    if tenths < 600:
        return f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else f"{tenths // 10} s"
    minutes, seconds = divmod(tenths // 10, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


_WRITTEN = re.compile(r"\d\d?:\d\d|\d{4}-\d\d-\d\d")
SHOWN_TIME = re.compile(r"(?<![\w:.+-])(?:\d{4}-\d\d-\d\d )?\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?!\w|:\d)")
_NOT_ROWS = ("name", "watermark", "event_time", "progress", "change")
_TIMESTAMP = DataType("timestamp")
_SECOND = 1_000_000
_LAST = 1_000_000_000 * _SECOND
"""In 2001. A number of more digits says less than a date; nobody writes one by hand."""


@dataclass(frozen=True)
class TimeNotation:
    in_seconds: bool = False
    """Whether times are numbers of seconds since 1970; otherwise they are times of day."""

    @classmethod
    def of(cls, case: Case | None) -> Self:
        """Choose seconds if the streams have times and no value of a row is a date or a time of day."""
        if case is None or not any("timestamp" in schema.ddl.lower() for schema in case.streams.values()):
            return cls()
        texts = _texts(step.model_dump() for step in case.steps)
        return cls(not any(map(_WRITTEN.search, texts)))

    def show(self, micros: int) -> str:
        """Write an instant, given in µs since the epoch."""
        if not self.in_seconds or abs(micros) >= _LAST:
            return show(micros)
        return f"{(Decimal(micros) / _SECOND).normalize():f}"

    def text(self, text: str) -> str:
        """Write the times of a text of the report in this notation.

        No value of a case in seconds looks like a time of day, so whatever does is a time that the report wrote.
        """
        return SHOWN_TIME.sub(self._instant, text) if self.in_seconds else text

    def table(self, table: StepTable | None) -> StepTable | None:
        if table is None or not self.in_seconds:
            return table
        steps = (replace(step, blocks=tuple(map(self._block, step.blocks))) for step in table.steps)
        return replace(table, steps=tuple(steps))

    def _block(self, block: Block) -> Block:
        return replace(block, sides=tuple(tuple(map(self._line, side)) for side in block.sides))

    def _line(self, line: Line) -> Line:
        return replace(line, values=tuple(replace(value, text=self.text(value.text)) for value in line.values))

    def _instant(self, match: re.Match[str]) -> str:
        try:
            micros = canonical(match[0], _TIMESTAMP)
        except NotAValue:
            return match[0]
        return self.show(micros) if isinstance(micros, int) else match[0]


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a step but those that are not in its rows."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _NOT_ROWS:
                yield from (*_texts(key), *_texts(part))
    elif isinstance(value, Iterable):
        for part in value:
            yield from _texts(part)
