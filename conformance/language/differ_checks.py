"""``differs`` against the case: entries that overlap, that can never hold, or that change what is not there."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.core.versions import SparkVersion, VersionRange, falling_into, releases
from conformance.language.node import Entries, Items, Node, Scalar, SourceLocation, child, entries_of, items_of, text_of
from conformance.language.problem import Report
from conformance.language.step_checks import step_number
from conformance.language.suggest import nearest


def check_differs(case: Node, report: Report) -> None:
    sensible = _releases_in(child(case, "spark"), report) or frozenset(releases())
    steps = items_of(child(case, "steps"))
    taken: dict[SparkVersion, int] = {}
    for number, entry in enumerate(items_of(child(case, "differs")), 1):
        spark = child(entry, "spark")
        mine = _releases_in(spark, report)
        if spark is not None and mine:
            if not mine & sensible:
                report.add(spark, f"the case's own `spark` range leaves out all of {_shown(spark)}")
            overlaps = sorted(version for version in mine if version in taken)
            if overlaps:
                earlier = f"entry {taken[overlaps[0]]} of differs, in {_and_more(overlaps)}"
                report.add(spark, f"{_shown(spark)} overlaps with {earlier}: a version has one entry")
            taken.update(dict.fromkeys(mine - taken.keys(), number))
        _check_start(entry, report)
        _check_changes(entry, steps, report)
        _check_reached(entry, steps, report)


def _releases_in(spark: Node | None, report: Report) -> frozenset[SparkVersion]:
    if spark is None or not report.sound(spark):
        return frozenset()
    return frozenset(falling_into(VersionRange.parse(spark.plain())))


def _shown(spark: Node) -> str:
    return repr(str(VersionRange.parse(spark.plain())))


def _and_more(versions: list[SparkVersion]) -> str:
    return f"{versions[0]}" if len(versions) == 1 else f"{versions[0]} and {len(versions) - 1} more"


def _check_start(entry: Node, report: Report) -> None:
    expect = child(entry, "expect")
    if isinstance(expect, Entries) and expect.entries and expect.get("error") is None:
        report.add(expect, "`expect` is of the start, in place of all steps: it names the `error`; else use `steps`")


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
            report.add(change.key, f"step {number} is changed twice: it is {seen[number]!r} as well")
        seen[number] = change.key.value
        _check_unchecked(change.value, steps[number - 1], number, report)
        error = child(change.value, "error")
        expected = child(child(steps[number - 1], "expect"), "error")
        if isinstance(error, Scalar) and error.value is None and expected is None:
            report.add(error, f"`error: null` expects none, and step {number} expects none anyway")


def _check_reached(entry: Node, steps: tuple[Node, ...], report: Report) -> None:
    """On its versions the case ends at the first error: what is changed behind that is never looked at."""
    changes = {step_number(change.key.value, steps): change for change in entries_of(child(entry, "steps"))}
    for number, step in enumerate(steps, 1):
        change = changes.get(number)
        error = child(change.value, "error") if change else None
        if isinstance(error or child(child(step, "expect"), "error"), Entries):
            for behind, unreached in changes.items():
                if behind is not None and behind > number:
                    message = f"step {behind} is not reached: here the case ends at the error of step {number}"
                    report.add(unreached.key, message)
            return


def _no_such_step(reference: Scalar, steps: tuple[Node, ...]) -> str:
    if not isinstance(reference.value, str):
        return f"there is no step {reference.value}: they go from 1 to {len(steps)}"
    near = nearest(reference.value, _names(steps))
    hint = f"did you mean {near!r}?" if near else "name a step, or write its number"
    return f"no step is called {reference.value!r}: {hint}"


def _names(steps: Iterable[Node]) -> list[str]:
    return [name for step in steps if (name := text_of(child(step, "name")))]


def _check_unchecked(change: Node, step: Node, number: int, report: Report) -> None:
    unchecked = child(change, "unchecked")
    if not isinstance(unchecked, Items) or not report.sound(unchecked):
        return
    checked = child(step, "expect")
    seen: dict[str, SourceLocation] = {}
    for item in unchecked.items:
        key = str(item.plain())
        if child(change, key) is not None:
            report.add(item, f"`{key}` is both replaced and unchecked")
        elif key != "rows" and child(checked, key) is None:
            report.add(item, f"step {number} does not check `{key}`: there is nothing to take out")
        elif key in seen:
            report.add(item, f"`{key}` is there twice")
        seen[key] = item
