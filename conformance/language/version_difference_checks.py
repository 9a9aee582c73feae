"""``differs`` and ``upgrades`` against the case: entries that overlap, that never apply, or that change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from conformance.core.case import Source
from conformance.core.versions import SparkVersion, VersionRange, falling_into, releases
from conformance.language.node import Entries, Entry, Items, Node, Scalar, child, entries_of, items_of, text_of
from conformance.language.problem import Report
from conformance.language.step_checks import step_number
from conformance.language.suggest import nearest
from conformance.language.version_differences import UPGRADE_KINDS, check_bug_and_link, check_one_kind


def check_differs(case: Node, report: Report) -> None:
    applicable = _releases_in(child(case, "spark"), report) or frozenset(releases())
    steps = items_of(child(case, "steps"))
    taken: dict[tuple[SparkVersion, str], int] = {}
    for number, entry in enumerate(items_of(child(case, "differs")), 1):
        spark = child(entry, "spark")
        mine = _releases_in(spark, report)
        if spark is not None and mine:
            if not mine & applicable:
                report.add(spark, f"the `spark` range of the case excludes all of {_shown(spark)}")
            source = text_of(child(entry, "source"))
            covered = {(version, one) for version in mine for one in ([source] if source else get_args(Source))}
            if overlaps := sorted(covered & taken.keys()):
                versions = sorted({version for version, _ in overlaps})
                earlier = f"overlaps entry {taken[overlaps[0]]} of `differs` in {_and_more(versions)}"
                report.add(spark, f"{_shown(spark)} {earlier}; entries must not overlap")
            taken.update(dict.fromkeys(covered - taken.keys(), number))
        _check_start(entry, report)
        _check_changes(entry, steps, report)
        _check_reached(entry, steps, report)


def check_upgrades(case: Node, report: Report) -> None:
    """Entries without exactly one kind, and steps that do not exist or cannot come after a version change."""
    steps = items_of(child(case, "steps"))
    for entry in items_of(child(case, "upgrades")):
        if not isinstance(entry, Entries):
            continue
        check_bug_and_link(entry, report)
        check_one_kind(entry, "upgrades", UPGRADE_KINDS, report)
        for change in entries_of(child(entry, "steps")):
            number = step_number(change.key.value, steps)
            if number is None:
                report.add(change.key, f"no step {change.key.value!r} exists")
            elif number == 1:
                report.add(change.key, "step 1 is never resumed: the version changes before step 2 at the earliest")
        cuts = child(entry, "cuts")
        for cut in [cuts] if isinstance(cuts, Scalar) else items_of(cuts):
            value = cut.plain()
            if isinstance(value, int) and value > len(steps):
                report.add(cut, _no_step(value, steps))


def _releases_in(spark: Node | None, report: Report) -> frozenset[SparkVersion]:
    if spark is None or not report.is_valid(spark):
        return frozenset()
    return frozenset(falling_into(VersionRange.parse(spark.plain())))


def _shown(spark: Node) -> str:
    return repr(str(VersionRange.parse(spark.plain())))


def _and_more(versions: list[SparkVersion]) -> str:
    return f"{versions[0]}" if len(versions) == 1 else f"{versions[0]} and {len(versions) - 1} more"


def _check_start(entry: Node, report: Report) -> None:
    expect = child(entry, "expect")
    if isinstance(expect, Entries) and expect.entries and expect.get("error") is None:
        report.add(expect, "`expect` applies to the start and must name an `error`; use `steps` for anything else")


def _check_changes(entry: Node, steps: tuple[Node, ...], report: Report) -> None:
    seen: dict[int, object] = {}
    for change in entries_of(child(entry, "steps")):
        number = step_number(change.key.value, steps)
        if isinstance(change.key.value, bool | None):
            continue
        if number is None:
            report.add(change.key, _no_such_step(change.key, steps))
            continue
        if number in seen:
            report.add(change.key, f"step {number} is changed twice, first as {seen[number]!r}")
        seen[number] = change.key.value
        _check_unchecked(change.value, steps[number - 1], number, report)
        _check_repeats(change, child(steps[number - 1], "expect"), number, report)
        error = child(change.value, "error")
        expected = child(child(steps[number - 1], "expect"), "error")
        if isinstance(error, Scalar) and error.value is None and expected is None:
            report.add(error, f"`error: null` has no effect: step {number} expects no error")


def _check_reached(entry: Node, steps: tuple[Node, ...], report: Report) -> None:
    """On its versions the case ends at the first error, so a change after it has no effect."""
    changes = {step_number(change.key.value, steps): change for change in entries_of(child(entry, "steps"))}
    for number, step in enumerate(steps, 1):
        change = changes.get(number)
        error = child(change.value, "error") if change else None
        if isinstance(error or child(child(step, "expect"), "error"), Entries):
            for later, unreached in changes.items():
                if later is not None and later > number:
                    message = f"step {later} is not reached: here the case ends at the error of step {number}"
                    report.add(unreached.key, message)
            return


def _no_such_step(reference: Scalar, steps: tuple[Node, ...]) -> str:
    if not isinstance(reference.value, str):
        return _no_step(reference.value, steps)
    near = nearest(reference.value, _names(steps))
    hint = f"did you mean {near!r}?" if near else "use the name or number of a step"
    return f"no step is named {reference.value!r}: {hint}"


def _no_step(number: object, steps: tuple[Node, ...]) -> str:
    return f"no step {number} exists: steps are numbered 1 to {len(steps)}"


def _names(steps: Iterable[Node]) -> list[str]:
    return [name for step in steps if (name := text_of(child(step, "name")))]


def _check_unchecked(change: Node, step: Node, number: int, report: Report) -> None:
    unchecked = child(change, "unchecked")
    if not isinstance(unchecked, Items) or not report.is_valid(unchecked):
        return
    checked = child(step, "expect")
    seen: set[str] = set()
    for item in unchecked.items:
        key = str(item.plain())
        if child(change, key) is not None:
            report.add(item, f"`{key}` is both replaced and unchecked")
        elif key != "rows" and child(checked, key) is None:
            report.add(item, f"`unchecked: {key}` has no effect: step {number} does not check it")
        elif key in seen:
            report.add(item, f"duplicate `{key}`")
        seen.add(key)


def _check_repeats(change: Entry, expect: Node | None, number: int, report: Report) -> None:
    """A change that says what the case says has no effect, unless it leaves something of `batches` out."""
    if not isinstance(change.value, Entries) or not change.value.entries or child(expect, "batches") is not None:
        return
    said = {"rows": [], **(expect.plain() if isinstance(expect, Entries) else {})}
    if all(entry.key.value in said and entry.value.plain() == said[entry.key.value] for entry in change.value.entries):
        report.add(change.key, f"this has no effect: it repeats what step {number} of the case expects")
