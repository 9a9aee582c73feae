"""``differs``: versions that behave otherwise, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.core.case import Differs
from conformance.core.versions import VersionRange
from conformance.language.expectations import CHANGE, EXPECTATION, expectation, expectation_change
from conformance.language.links import LINK
from conformance.language.nested import Key, ListOf, Record
from conformance.language.node import Entries, Node
from conformance.language.problem import Report
from conformance.language.shape import Definitions, Json, Shape, Text, literal
from conformance.language.version_ranges import RANGE

WAYS = ("expect", "steps", "unsupported")
"""How an entry says what is otherwise: exactly one of these."""


@dataclass(frozen=True)
class _Steps(Shape):
    """Step number or name → what replaces its expectation."""

    @property
    def what(self) -> str:
        return "a mapping from the number or name of a step to what replaces its expectation"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        if not node.entries:
            report.add(node, f"empty: it must be {self.what}")
            return False
        sound = [CHANGE.check(entry.value, report) for entry in node.entries]
        for entry in node.entries:
            if isinstance(entry.key.value, bool) or not isinstance(entry.key.value, int | str):
                report.add(entry.key, f"{literal(entry.key)} is not the number or name of a step")
                sound.append(False)
        return all(sound)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "object", "minProperties": 1, "additionalProperties": CHANGE.schema(definitions)}


@dataclass(frozen=True)
class _Entry(Shape):
    """A record that says in exactly one way what is otherwise."""

    record: Record

    @property
    def what(self) -> str:
        return self.record.what

    def sound(self, node: Node, report: Report) -> bool:
        sound = self.record.check(node, report)
        if not isinstance(node, Entries):
            return sound
        ways = [way for way in WAYS if node.get(way) is not None]
        if not ways:
            report.add(node, f"an entry of differs says what is otherwise: one of {', '.join(WAYS)}")
        for other in ways[1:]:
            report.add(node.key(other), f"`{other}` beside `{ways[0]}`: an entry has one of {', '.join(WAYS)}")
        if bug_beside_link(node, report):
            sound = False
        if "unsupported" in ways:
            for other, why in (("because", "is itself the reason"), ("bug", "says that nothing is wrong")):
                if node.get(other) is not None:
                    report.add(node.key(other), f"`{other}` beside `unsupported`, which {why}: leave it out")
                    return False
        if ways and "unsupported" not in ways and node.get("because") is None:
            report.add(node, "`because` is missing: why do these versions behave otherwise?")
            return False
        return sound and len(ways) == 1

    def schema(self, definitions: Definitions) -> Json:
        with_reason = [{"required": [way, "because"], "not": _any_of(way, BUG_AND_LINK)} for way in WAYS[:2]]
        unsupported = {"required": ["unsupported"], "not": _any_of("unsupported", ["because"], ["bug"])}
        return {**self.record.schema(definitions), "oneOf": [*with_reason, unsupported]}


CHANGES = _Steps()
"""Step number or name → what replaces its expectation."""


BUG_AND_LINK = ["bug", "link"]


def _any_of(way: str, *more: list[str]) -> Json:
    return {"anyOf": [{"required": keys} for keys in (*([other] for other in WAYS if other != way), *more)]}


def bug_beside_link(node: Entries, report: Report) -> bool:
    """Report an entry with both: the bug is its own link."""
    both = all(node.get(key) is not None for key in BUG_AND_LINK)
    if both:
        report.add(node.key("link"), "`link` beside `bug`, which names the ticket: leave it out")
    return both


BUG = Key(LINK, "In place of `link`, where it is a known bug of these versions and no documented change: its ticket.")

DIFFERS = ListOf(
    _Entry(
        Record(
            "an entry of differs",
            {
                "spark": Key(RANGE, "the versions: a PEP 440 range, or a list of which any may hold", required=True),
                "because": Key(Text("a reason"), "Why they behave otherwise."),
                "link": Key(LINK, "The ticket or page that says so."),
                "bug": BUG,
                "expect": Key(
                    EXPECTATION, "What is expected of the start, instead of every step's expectation: an error."
                ),
                "steps": Key(CHANGES, "Step number (from 1) or name → the keys of its expectation that are otherwise."),
                "unsupported": Key(
                    Text("a reason"),
                    "Why the feature is not there; checked: the case must fail at analysis or start.",
                ),
            },
            meaning="Versions that behave otherwise, with the reason; entries may not overlap.",
        )
    ),
    "a list of entries, each a range of versions with what they do otherwise",
)


def differs(written: dict[str, Json], numbers: Mapping[str, int]) -> Differs:
    """The entry that a valid mapping describes.

    Args:
        written: the entry.
        numbers: name of a step → its number.
    """
    steps = written.get("steps", {})
    return Differs(
        spark=VersionRange.parse(written["spark"]),
        link=written.get("bug", written.get("link")),
        bug="bug" in written,
        because=written.get("because"),
        unsupported=written.get("unsupported"),
        expect=expectation(written["expect"]) if "expect" in written else None,
        steps={
            reference if isinstance(reference, int) else numbers[reference]: expectation_change(change)
            for reference, change in steps.items()
        },
    )
