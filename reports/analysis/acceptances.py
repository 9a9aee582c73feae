"""The file of accepted changes, each with a reason, for ``conformance gate --accept``.

```yaml
accepted:
  - link: SPARK-40925                          # every change for this reason, or
  - case: late-drops/window-still-open         # every change of this case
    change: rows                               # only of this kind: rows, refused, timing, accepted, metric
    from: 3.5.9                                # only between these versions
    to: 4.0.5
    because: our job keeps a day of slack
```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from conformance.core.output_file import LOOKED_AT, FileKind
from conformance.language.node import Entries, Items, Node, Scalar
from conformance.language.problem import InvalidCase, Report, unknown
from conformance.language.source import read_yaml
from reports.analysis.change import MEANINGS, Change

KEYS = ("case", "link", "change", "from", "to", "because")


@dataclass(frozen=True)
class Acceptance:
    """One entry."""

    path: Path
    line: int
    because: str
    case: str | None = None
    link: str | None = None
    change: str | None = None
    before: str | None = None
    after: str | None = None

    def applies_to(self, before: str, after: str) -> bool:
        """Whether it applies to these two versions."""
        return self.before in (None, before) and self.after in (None, after)

    def covers(self, change: Change) -> bool:
        """Whether it accepts the change, if it applies to the versions."""
        links = {reason.link for reason in change.reasons}
        return (
            (self.case is None or self.case == change.case)
            and (self.link is None or self.link in links)
            and (self.change is None or self.change == change.meaning)
        )

    def __str__(self) -> str:
        what = [self.case, self.link, self.change and f"change: {self.change}"]
        return f"{self.path}:{self.line}: {', '.join(part for part in what if part)}"


def read_accepted(path: Path) -> tuple[Acceptance, ...]:
    """Read the file.

    Raises:
        InvalidCase: the file is invalid; with every problem and its line.
    """
    report = Report(path)
    content = read_yaml(path, report)
    listed = content.get("accepted") if isinstance(content, Entries) else None
    if content is not None and not (isinstance(content, Entries) and isinstance(listed, Items)):
        report.add(content, "must be a mapping with one key, `accepted`: a list of entries, each with a reason")
    if isinstance(content, Entries):
        for key in (entry.key.value for entry in content.entries):
            if key != "accepted":
                report.add(content.key(str(key)), unknown("key", str(key), ["accepted"]))
    found = [_acceptance(item, path, report) for item in (listed.items if isinstance(listed, Items) else ())]
    if report.problems:
        raise InvalidCase(report.problems)
    return tuple(entry for entry in found if entry is not None)


_HEAD = (
    "# Review each change and say why it is acceptable for your job. An entry that matches no change fails the gate."
)
_DRAFTED = re.compile(rb"accepted:( \[\])?|  - case: .*|    change: .*|    because:|")


def _has_no_reasons(start: bytes) -> bool:
    head, *lines = start.split(b"\n")
    return head == _HEAD.encode() and len(start) < LOOKED_AT and all(map(_DRAFTED.fullmatch, lines))


DRAFT = FileKind("a draft without reasons", _has_no_reasons)
"""What a draft may replace: reasons that somebody has written are never lost."""


def draft(changes: tuple[Change, ...]) -> str:
    """A file that accepts these changes once the reasons are filled in; without reasons it is invalid."""
    lines = [_HEAD, "accepted:" if changes else "accepted: []"]
    for change in changes:
        lines.append(f"  - case: {change.case}")
        lines.append(f"    change: {change.meaning}    # {change.what}")
        lines.append("    because:")
    return "\n".join(lines) + "\n"


def _acceptance(node: Node, path: Path, report: Report) -> Acceptance | None:
    if not isinstance(node, Entries):
        report.add(node, "an entry must be a mapping with `case` or `link`, and `because`")
        return None
    before = len(report.problems)
    said: dict[str, str] = {}
    for entry in node.entries:
        key = str(entry.key.value)
        if key not in KEYS:
            report.add(entry.key, unknown("key", key, KEYS))
        elif not isinstance(entry.value, Scalar) or entry.value.value is None or not str(entry.value.value).strip():
            reason = "an accepted change needs a reason" if key == "because" else f"`{key}` must be text"
            report.add(entry.value, reason)
        else:
            said[key] = str(entry.value.value).strip()
    if "case" not in said and "link" not in said and len(report.problems) == before:
        report.add(node, "an entry needs a `case`, or the `link` of a reason")
    if node.get("because") is None:
        report.add(node, "an accepted change needs a reason: add `because`")
    if "change" in said and said["change"] not in MEANINGS:
        report.add(node.get("change") or node, unknown("kind of change", said["change"], MEANINGS))
    if len(report.problems) > before:
        return None
    return Acceptance(
        path=path,
        line=node.line,
        because=said["because"],
        case=said.get("case"),
        link=said.get("link"),
        change=said.get("change"),
        before=said.get("from"),
        after=said.get("to"),
    )
