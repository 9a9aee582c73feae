"""``differs`` and ``upgrades``: ranges of versions, and pairs of them, for which another result is expected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, TypeAlias, get_args

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.core.case import Interface, Source
from conformance.core.data import Json
from conformance.core.versions import NotARange, SparkVersion, VersionRange, falling_into, releases
from conformance.core.wording import nearest
from conformance.language import shape as shapes
from conformance.language import source as nodes
from conformance.language.shape import ByKind, Choice, Definitions, Key, ListOf, Record, Shape, Text
from conformance.language.source import Entries, Node, ProblemReport, Scalar, child, entries_of, items_of, text_of
from conformance.language.steps import CHANGE, ERROR, EXPECTATION, REFUSAL, step_numbers


class _OneRange(Shape):
    kind = "a quoted version range: '>=3.4,<3.4.4'"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return self.reject(node, report)
        try:
            VersionRange.parse(node.value)
        except NotARange as wrong:
            return self.reject(node, report, str(wrong))
        unknown = _unknown_versions(node.value)
        for operator, version in unknown:
            known = f"known releases range from {releases()[0]} to {releases()[-1]}"
            near = nearest(version, [str(release) for release in releases()])
            older = Version(version.removesuffix(".*")) < Version(str(releases()[0]))
            message = f"{version} in {node.value!r} is not a Spark release: "
            message += f"the nearest is {near}" if near and not older else known
            if older and operator in ("<", "<="):
                message = f"no known release is below {version}: {known}"
            report.add(node, message)
        return not unknown

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "string", "pattern": r"^\s*(<=?|>=?|==|!=|~=)", "examples": [">=3.4,<3.4.4"]}


class _Range(ByKind):
    """One range, or a list of alternative ranges; each must contain a release."""

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not super().validate(node, report):
            return False
        empty = [part for part in nodes.each_of(node) if not any(falling_into(VersionRange.parse(part.plain())))]
        for part in empty:
            report.add(part, f"{part.plain()!r} contains no Spark release")
        return not empty

    def value(self, written: Json) -> VersionRange:
        return VersionRange.parse(written)


_ALTERNATIVES = ListOf(_OneRange(), _OneRange.kind, at_least=1)
RANGE = shapes.Definition(_Range(_OneRange.kind, scalar=_OneRange(), items=_ALTERNATIVES), "versions")


@cache
def _unknown_versions(text: str) -> list[tuple[str, str]]:
    """Return operator and version of each bound that is no release, and not what releases begin with: 3 and 3.5 of 3.5.1."""
    known = {tuple(str(release).split("."))[:parts] for release in releases() for parts in (1, 2, 3)}
    bounds = ((bound.operator, bound.version) for bound in sorted(SpecifierSet(text), key=str))
    return [bound for bound in bounds if tuple(bound[1].removesuffix(".*").split(".")) not in known]


LINK = Text("a ticket (SPARK-18124) or a URL (https://…)", r"^(SPARK-[0-9]+|https?://[^\s/]+\.\S+)$")

DIFFERS_KINDS = ("expect", "steps", "unsupported")
"""An entry of ``differs`` has exactly one of these."""
UPGRADE_KINDS = ("refused", "steps")
"""An entry of ``upgrades`` has exactly one of these."""


_CHANGES = shapes.MapOf(
    shapes.ValueShape(
        "the number or name of a step",
        lambda name: isinstance(name, int | str) and not isinstance(name, bool),
        {"type": ["integer", "string"]},
    ),
    CHANGE,
    "a mapping from the number or name of a step to what replaces its expectation",
    at_least=1,
)


class _Entry(Record):
    """A record whose bug is its link, unless it has no ticket."""

    def value(self, written: Json) -> Any:
        values = super().value(written)
        bug = values.get("bug")
        if bug is None:
            return values
        introduced_by = bug.removeprefix("none").removeprefix(", introduced by ")
        ticket = {"introduced_by": introduced_by or None} if bug.startswith("none") else {"link": bug}
        return {**values, "bug": True, **ticket}


class _DiffersEntry(_Entry):
    """A record with exactly one of ``DIFFERS_KINDS``."""

    def validate(self, node: Node, report: ProblemReport) -> bool:
        valid = super().validate(node, report)
        if not isinstance(node, Entries):
            return False
        kinds = check_one_kind(node, "differs", DIFFERS_KINDS, report)
        valid &= not _check_link(node, report)
        if "unsupported" in kinds:
            for other, why in (("because", "`unsupported` is the reason"), ("bug", "`unsupported` is not a bug")):
                if report.forbid(node, other, f"remove `{other}`: {why}"):
                    return False
        elif kinds:
            if report.forbid(node, "error", f"`error` belongs to `unsupported`: write it inside `{kinds[0]}`"):
                return False
            if node.get("because") is None:
                return self.reject(node, report, "`because` is missing: why do these versions behave differently?")
        return valid and len(kinds) == 1

    def schema(self, definitions: Definitions) -> Json:
        def kind_of_entry(kind: str, required: list[str], *forbidden: list[str]) -> Json:
            without = (*([other] for other in DIFFERS_KINDS if other != kind), *forbidden)
            return {"required": [kind, *required], "not": {"anyOf": [{"required": keys} for keys in without]}}

        with_reason = [kind_of_entry(kind, ["because"], ["bug", "link"], ["error"]) for kind in DIFFERS_KINDS[:2]]
        unsupported = kind_of_entry("unsupported", [], ["because"], ["bug"])
        return {**super().schema(definitions), "oneOf": [*with_reason, unsupported]}


def check_one_kind(entry: Entries, key: str, kinds: Sequence[str], report: ProblemReport) -> list[str]:
    """Return the kinds that an entry has; none and several are reported."""
    present = [kind for kind in kinds if entry.get(kind) is not None]
    if not present:
        report.add(entry, f"an entry of `{key}` needs one of {', '.join(kinds)}")
    for other in present[1:]:
        message = f"`{other}` and `{present[0]}` in one entry: expected only one of {', '.join(kinds)}"
        report.add(entry.key(other), message)
    return present


def _check_link(entry: Entries, report: ProblemReport) -> bool:
    """Report the link of a bug, which is its own link; whether there is one."""
    return entry.get("bug") is not None and report.forbid(entry, "link", "remove `link`: `bug` names the ticket")


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
        "an entry of `differs`",
        {
            "spark": Key(RANGE, "the versions, as a PEP 440 range or a list of alternative ranges", required=True),
            "source": Key(Choice("source", get_args(Source)), "Where the rows come from, if they behave so only then."),
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
    ),
    "a list of entries, each with a version range and what differs there",
)

_INTERFACE = Choice("interface", get_args(Interface))
_UPGRADE = {
    "from": Key(RANGE, "The versions that wrote the checkpoint; any if absent."),
    "to": Key(RANGE, "The versions that resume it; any if absent."),
    "writtenBy": Key(_INTERFACE, "How the query that wrote it reached Spark; either way if absent."),
    "resumedBy": Key(_INTERFACE, "How the query that resumes it reaches Spark; either way if absent."),
    "cuts": Key(
        shapes.one_or_many(shapes.integer(2), "the number of a step from 2, or a list of such numbers"),
        "The steps before which the version changes; any if absent.",
    ),
    "because": Key(_REASON, "why the result differs", required=True),
    "link": Key(LINK, "The ticket or page that documents it."),
    "bug": _BUG,
    "wayRound": Key(Text("a workaround"), "The documented workaround.", field="workaround"),
    "refused": Key(ERROR, "The resuming version rejects the checkpoint with this error.", field="error"),
}


UPGRADES = ListOf(
    _Entry(
        "an entry of `upgrades`",
        {**_UPGRADE, "steps": Key(_CHANGES, "Step number or name → the keys of its expectation that differ.")},
        description="Pairs of versions where the second rejects, or does not simply resume, the checkpoint of the first.",
    ),
    "a list of entries, each with a pair of version ranges and what differs there",
)
SHARED_UPGRADES = shapes.MapOf(
    Text("an id"),
    _Entry(
        "an entry of `upgrades.yaml`",
        {
            "cases": Key(ListOf(Text("the id of a case"), "a list of ids of cases"), "the cases", required=True),
            **{name: key for name, key in _UPGRADE.items() if name not in ("cuts", "link")},
            "link": replace(_UPGRADE["link"], required=True),
            "steps": Key(_CHANGES, "Step number → the keys of its expectation that differ."),
        },
    ),
    "a mapping from id to entry",
)
"""What stands in ``upgrades.yaml`` of a suite: a version rejects, or does not simply resume, the checkpoints of many cases."""


def check_shared_upgrades(entries: Entries, report: ProblemReport) -> None:
    """Report entries of ``upgrades.yaml`` without exactly one kind, and steps that are no numbers: each case names its own."""
    for entry in entries_of(entries):
        if isinstance(entry.value, Entries):
            check_one_kind(entry.value, "upgrades.yaml", UPGRADE_KINDS, report)
        for change in entries_of(entry.value, "steps"):
            if not isinstance(change.key.value, int):
                report.add(change.key, f"{shapes.literal(change.key)} is not the number of a step")


def with_step_numbers(entries: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """Refer to steps by number only in entries of ``differs`` or ``upgrades``; ``numbers``: by the names of steps."""
    changes = ((entry, entry.get("steps", {}).items()) for entry in entries)
    return [{**entry, "steps": {numbers.get(step, step): change for step, change in steps}} for entry, steps in changes]


def check_differs(case: Node, report: ProblemReport) -> None:
    applicable = frozenset(releases_in(case, report) or releases())
    steps = items_of(case, "steps")
    numbered = step_numbers(steps)
    taken: dict[tuple[SparkVersion, str], int] = {}
    for number, entry in enumerate(items_of(case, "differs"), 1):
        spark = child(entry, "spark")
        if spark is not None and (mine := releases_in(entry, report)):
            if applicable.isdisjoint(mine):
                report.add(spark, f"the `spark` range of the case excludes all of {_shown(spark)}")
            source = text_of(entry, "source")
            covered = set(product(mine, [source] if source else get_args(Source)))
            if overlaps := sorted(covered & taken.keys()):
                versions = sorted({version for version, _ in overlaps})
                more = f" and {len(versions) - 1} more" if len(versions) > 1 else ""
                earlier = f"overlaps entry {taken[overlaps[0]]} of `differs` in {versions[0]}{more}"
                report.add(spark, f"{_shown(spark)} {earlier}; entries must not overlap")
            taken.update(dict.fromkeys(covered - taken.keys(), number))
        expect = child(entry, "expect")
        if isinstance(expect, Entries) and expect.entries and expect.get("error") is None:
            report.add(expect, "`expect` applies to the start and must name an `error`; use `steps` for anything else")
        _check_changes(entry, steps, numbered, report)
        _check_reached(entry, steps, numbered, report)


def check_upgrades(case: Node, report: ProblemReport) -> None:
    """Report entries without exactly one kind, and steps that do not exist or cannot come after a version change."""
    steps = items_of(case, "steps")
    numbered = step_numbers(steps)
    for entry in items_of(case, "upgrades"):
        if not isinstance(entry, Entries):
            continue
        _check_link(entry, report)
        check_one_kind(entry, "upgrades", UPGRADE_KINDS, report)
        for change in entries_of(entry, "steps"):
            number = numbered(change.key.value)
            if number is None:
                report.add(change.key, f"no step {change.key.value!r} exists")
            elif number == 1:
                report.add(change.key, "step 1 is never resumed: the version changes before step 2 at the earliest")
        for cut in nodes.each_of(entry, "cuts"):
            if isinstance(cut, Scalar) and isinstance(cut.value, int) and cut.value > len(steps):
                report.add(cut, _no_step(cut.value, steps))


def releases_in(node: Node, report: ProblemReport) -> tuple[SparkVersion, ...]:
    """Return the releases of which a case or an entry with ``spark`` speaks: all without a range, none if it is not valid."""
    spark = child(node, "spark")
    if spark is None:
        return releases()
    return falling_into(VersionRange.parse(spark.plain())) if report.is_valid(spark) else ()


def _shown(spark: Node) -> str:
    return repr(str(VersionRange.parse(spark.plain())))


Numbered: TypeAlias = Callable[[object], int | None]


def _check_changes(entry: Node, steps: tuple[Node, ...], numbered: Numbered, report: ProblemReport) -> None:
    changed: dict[int, object] = {}
    for change in entries_of(entry, "steps"):
        if isinstance(change.key.value, bool | None):
            continue
        number = numbered(change.key.value)
        if number is None:
            report.add(change.key, _no_such_step(change.key, steps))
            continue
        if number in changed:
            report.add(change.key, f"step {number} is changed twice, first as {changed[number]!r}")
        changed[number] = change.key.value
        expect, error = child(steps[number - 1], "expect"), child(change.value, "error")
        _check_unchecked(change.value, expect, number, report)
        _check_repeats(change, expect, number, report)
        if isinstance(error, Scalar) and error.value is None and child(expect, "error") is None:
            report.add(error, f"`error: null` has no effect: step {number} expects no error")


def _check_reached(entry: Node, steps: tuple[Node, ...], numbered: Numbered, report: ProblemReport) -> None:
    """Report a change after the error at which the case ends on these versions."""
    changes = {numbered(change.key.value): change for change in entries_of(entry, "steps")}
    for number, step in enumerate(steps, 1):
        change = changes.get(number)
        error = child(change.value, "error") if change else None
        if isinstance(error or child(step, "expect", "error"), Entries):
            for later, unreached in changes.items():
                if later is not None and later > number:
                    message = f"step {later} is not reached: here the case ends at the error of step {number}"
                    report.add(unreached.key, message)
            return


def _no_such_step(reference: Scalar, steps: tuple[Node, ...]) -> str:
    if not isinstance(reference.value, str):
        return _no_step(reference.value, steps)
    near = nearest(reference.value, [name for step in steps if (name := text_of(step, "name"))])
    hint = f"did you mean {near!r}?" if near else "use the name or number of a step"
    return f"no step is named {reference.value!r}: {hint}"


def _no_step(number: object, steps: tuple[Node, ...]) -> str:
    return f"no step {number} exists: steps are numbered 1 to {len(steps)}"


def _check_unchecked(change: Node, expect: Node | None, number: int, report: ProblemReport) -> None:
    unchecked = child(change, "unchecked")
    if not isinstance(unchecked, nodes.Items) or not report.is_valid(unchecked):
        return
    named: set[str] = set()
    for item in unchecked.items:
        key = str(item.plain())
        if child(change, key) is not None:
            report.add(item, f"`{key}` is both replaced and unchecked")
        elif key != "rows" and child(expect, key) is None:
            report.add(item, f"`unchecked: {key}` has no effect: step {number} does not check it")
        elif key in named:
            report.add(item, f"duplicate `{key}`")
        named.add(key)


def _check_repeats(change: nodes.Entry, expect: Node | None, number: int, report: ProblemReport) -> None:
    """Report a change that says what the case says, unless it leaves something of `batches` out."""
    if not isinstance(change.value, Entries) or not change.value.entries or child(expect, "batches") is not None:
        return
    said = {"rows": [], **(expect.plain() if isinstance(expect, Entries) else {})}
    if all(entry.key.value in said and entry.value.plain() == said[entry.key.value] for entry in change.value.entries):
        report.add(change.key, f"this has no effect: it repeats what step {number} of the case expects")
