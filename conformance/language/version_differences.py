"""``differs`` and ``upgrades``: versions, and pairs of versions, for which another result is expected, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from conformance.core.case import Interface, Source
from conformance.language.compound_shapes import Key, ListOf, MapOf, Record, one_or_many
from conformance.language.expectations import CHANGE, ERROR, EXPECTATION, REFUSAL
from conformance.language.node import Entries, Node, child, entries_of
from conformance.language.problem import Report
from conformance.language.shape import Choice, Converted, Definitions, Integer, Json, Shape, Text, literal
from conformance.language.version_ranges import RANGE

LINK = Text("a ticket (SPARK-18124) or a URL (https://…)", r"^(SPARK-[0-9]+|https?://[^\s/]+\.\S+)$")

DIFFERS_KINDS = ("expect", "steps", "unsupported")
"""An entry of ``differs`` has exactly one of these."""
UPGRADE_KINDS = ("refused", "steps")
"""An entry of ``upgrades`` has exactly one of these."""


@dataclass(frozen=True)
class _Changes(Shape):
    """Step number or name → what replaces its expectation."""

    @property
    def expected(self) -> str:
        return "a mapping from the number or name of a step to what replaces its expectation"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Entries):
            return self.reject(node, report)
        if not node.entries:
            report.add(node, f"must not be empty: expected {self.expected}")
            return False
        valid = [CHANGE.check(entry.value, report) for entry in node.entries]
        for entry in node.entries:
            if isinstance(entry.key.value, bool) or not isinstance(entry.key.value, int | str):
                report.add(entry.key, f"{literal(entry.key)} is not the number or name of a step")
                valid.append(False)
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        return {"type": "object", "minProperties": 1, "additionalProperties": CHANGE.schema(definitions)}

    def value(self, written: Json) -> dict[int | str, Any]:
        return {reference: CHANGE.value(change) for reference, change in written.items()}


@dataclass(frozen=True)
class _DiffersEntry(Shape):
    """A record with exactly one of ``DIFFERS_KINDS``."""

    record: Record

    @property
    def expected(self) -> str:
        return self.record.expected

    def validate(self, node: Node, report: Report) -> bool:
        valid = self.record.check(node, report)
        if not isinstance(node, Entries):
            return valid
        kinds = check_one_kind(node, "differs", DIFFERS_KINDS, report)
        if check_bug_and_link(node, report):
            valid = False
        if "unsupported" in kinds:
            for other, why in (("because", "`unsupported` is the reason"), ("bug", "`unsupported` is not a bug")):
                if node.get(other) is not None:
                    report.add(node.key(other), f"remove `{other}`: {why}")
                    return False
        elif kinds and node.get("error") is not None:
            report.add(node.key("error"), f"`error` belongs to `unsupported`: write it inside `{kinds[0]}`")
            return False
        if kinds and "unsupported" not in kinds and node.get("because") is None:
            report.add(node, "`because` is missing: why do these versions behave differently?")
            return False
        return valid and len(kinds) == 1

    def schema(self, definitions: Definitions) -> Json:
        with_reason = [
            {"required": [kind, "because"], "not": _any_of(kind, ["bug", "link"], ["error"])}
            for kind in DIFFERS_KINDS[:2]
        ]
        unsupported = {"required": ["unsupported"], "not": _any_of("unsupported", ["because"], ["bug"])}
        return {**self.record.schema(definitions), "oneOf": [*with_reason, unsupported]}

    def value(self, written: Json) -> Any:
        return _with_bug(self.record.value(written))


def _any_of(kind: str, *more: list[str]) -> Json:
    return {"anyOf": [{"required": keys} for keys in (*([other] for other in DIFFERS_KINDS if other != kind), *more)]}


def _with_bug(values: dict[str, Any]) -> dict[str, Any]:
    """A bug is the link of its entry, unless it has no ticket."""
    if "bug" not in values:
        return values
    if not values["bug"].startswith("none"):
        return {**values, "link": values["bug"], "bug": True}
    return {
        **values,
        "bug": True,
        "introduced_by": values["bug"].removeprefix("none").removeprefix(", introduced by ") or None,
    }


def check_one_kind(entry: Entries, key: str, kinds: Sequence[str], report: Report) -> list[str]:
    """Report an entry without any of the kinds or with several.

    Returns:
        Those that it has.
    """
    found = [kind for kind in kinds if entry.get(kind) is not None]
    if not found:
        report.add(entry, f"an entry of `{key}` needs one of {', '.join(kinds)}")
    for other in found[1:]:
        report.add(
            entry.key(other), f"`{other}` and `{found[0]}` in one entry: expected only one of {', '.join(kinds)}"
        )
    return found


def check_bug_and_link(entry: Entries, report: Report) -> bool:
    """Report an entry with both, since a bug is its own link; True if it has both."""
    both = entry.get("bug") is not None and entry.get("link") is not None
    if both:
        report.add(entry.key("link"), "remove `link`: `bug` names the ticket")
    return both


_CHANGES = _Changes()
_BUG = Key(
    Text(
        "the ticket that reports a bug (SPARK-18124) or its URL, or `none, introduced by SPARK-51955`",
        r"^(SPARK-[0-9]+|https?://[^\s/]+\.\S+|none(, introduced by SPARK-[0-9]+)?)$",
    ),
    "In place of `link`: the ticket that reports a known bug of these versions, as opposed to a documented change. "
    "Without one: `none, introduced by SPARK-51955`, or `none`.",
)
_REASON = Text("a reason")

DIFFERS = ListOf(
    _DiffersEntry(
        Record(
            "an entry of `differs`",
            {
                "spark": Key(RANGE, "the versions, as a PEP 440 range or a list of alternative ranges", required=True),
                "source": Key(
                    Choice("source", get_args(Source)), "Where the rows come from, if they behave so only then."
                ),
                "because": Key(_REASON, "Why they behave differently."),
                "link": Key(LINK, "The ticket or page that documents it."),
                "bug": _BUG,
                "expect": Key(EXPECTATION, "The error expected at the start, in place of all expectations of steps."),
                "steps": Key(_CHANGES, "Step number (from 1) or name → the keys of its expectation that differ."),
                "unsupported": Key(
                    _REASON,
                    "Why the feature does not exist. This is checked: the case must fail at analysis or start with `error`.",
                ),
                "error": Key(
                    REFUSAL,
                    "Of `unsupported`: the error that says that the feature is missing. If absent, only a missing method counts.",
                ),
            },
            description="Versions that behave differently, with the reason; entries must not overlap.",
        )
    ),
    "a list of entries, each with a version range and what differs there",
)

_INTERFACE = Choice("interface", get_args(Interface))
_UPGRADE = {
    "from": Key(RANGE, "The versions that wrote the checkpoint; any if absent."),
    "to": Key(RANGE, "The versions that resume it; any if absent."),
    "writtenBy": Key(
        _INTERFACE, "How the query that wrote it reached Spark; either way if absent.", field="written_by"
    ),
    "resumedBy": Key(
        _INTERFACE, "How the query that resumes it reaches Spark; either way if absent.", field="resumed_by"
    ),
    "cuts": Key(
        one_or_many(Integer(minimum=2), "the number of a step from 2, or a list of such numbers"),
        "The steps before which the version changes; any if absent.",
    ),
    "because": Key(_REASON, "why the result differs", required=True),
    "link": Key(LINK, "The ticket or page that documents it."),
    "bug": _BUG,
    "wayRound": Key(Text("a workaround"), "The documented workaround."),
    "refused": Key(ERROR, "The resuming version rejects the checkpoint with this error.", field="error"),
}

UPGRADES = ListOf(
    Converted(
        Record(
            "an entry of `upgrades`",
            {
                **_UPGRADE,
                "steps": Key(_CHANGES, "Step number or name → the keys of its expectation that differ."),
            },
            description="Pairs of versions where the second rejects, or does not simply resume, the checkpoint of the first.",
        ),
        _with_bug,
    ),
    "a list of entries, each with a pair of version ranges and what differs there",
)


SHARED_UPGRADES = MapOf(
    Text("an id"),
    Converted(
        Record(
            "an entry of `upgrades.yaml`",
            {
                "cases": Key(ListOf(Text("the id of a case"), "a list of ids of cases"), "the cases", required=True),
                **{name: key for name, key in _UPGRADE.items() if name not in ("cuts", "link")},
                "link": replace(_UPGRADE["link"], required=True),
                "steps": Key(_CHANGES, "Step number → the keys of its expectation that differ."),
            },
        ),
        _with_bug,
    ),
    "a mapping from id to entry",
)
"""What stands in ``upgrades.yaml`` of a suite: a version rejects, or does not simply resume, the checkpoints of many cases."""


def check_shared_upgrades(entries: Entries, report: Report) -> None:
    """Entries of ``upgrades.yaml`` without exactly one kind, and steps that are not numbers: the cases name theirs differently."""
    for entry in entries_of(entries):
        if isinstance(entry.value, Entries):
            check_one_kind(entry.value, "upgrades.yaml", UPGRADE_KINDS, report)
        for change in entries_of(child(entry.value, "steps")):
            if not isinstance(change.key.value, int):
                report.add(change.key, f"{literal(change.key)} is not the number of a step")


def with_step_numbers(entries: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """Values of entries, with steps referenced by number only.

    Args:
        entries: of ``differs`` or ``upgrades``.
        numbers: step name → step number.
    """
    return [
        {
            **entry,
            "steps": {
                key if isinstance(key, int) else numbers[key]: change for key, change in entry.get("steps", {}).items()
            },
        }
        for entry in entries
    ]
