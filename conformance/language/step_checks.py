"""The order of steps: what cannot happen, or would never be looked at."""

from __future__ import annotations

from conformance.language.differing import WAYS
from conformance.language.node import Entries, Items, Node, Scalar, child, entries_of, items_of, text_of
from conformance.language.problem import Report

_DATA = ("add", "backlog")


def check_steps(case: Node, report: Report) -> None:
    steps = items_of(child(case, "steps"))
    _names(steps, report)
    _start_first(steps, report)
    _something_to_replay(steps, report)
    _killing(steps, report)
    _backlog_not_once(case, steps, report)
    _backlog_names_a_stream(steps, report)
    _ends_at_an_error(case, steps, report)
    _kinds_of_batches(case, steps, report)
    for expect in _expectations(case, steps):
        _nothing_beside_an_error(expect, report)


def step_number(reference: object, steps: tuple[Node, ...]) -> int | None:
    """The number of the step that ``differs`` names, by number or by name; None where there is no such step."""
    if isinstance(reference, int) and not isinstance(reference, bool):
        return reference if 1 <= reference <= len(steps) else None
    names = [text_of(child(step, "name")) for step in steps]
    return names.index(reference) + 1 if isinstance(reference, str) and reference in names else None


def _names(steps: tuple[Node, ...], report: Report) -> None:
    seen: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        node = child(step, "name")
        name = text_of(node)
        if node is None or name is None:
            continue
        if name in seen:
            report.add(node, f"step {seen[name]} has the name {name!r} already: `differs` could not tell them apart")
        seen.setdefault(name, number)


def _start_first(steps: tuple[Node, ...], report: Report) -> None:
    for number, step in enumerate(steps[1:], 2):
        if isinstance(step, Entries) and step.get("start") is not None:
            report.add(step.key("start"), f"`start` as step {number}: the query runs since step 1")


def _something_to_replay(steps: tuple[Node, ...], report: Report) -> None:
    for step in steps:
        if any(child(step, action) is not None for action in _DATA):
            return
        if child(child(step, "restart"), "add") is not None:
            return
        restart = child(step, "restart")
        how = child(restart, "how") if isinstance(restart, Entries) else restart
        if how is not None and text_of(how) == "crash-before-commit":
            report.add(how, "crash-before-commit replays the last batch, and no batch has run before this step")
            return


def _killing(steps: tuple[Node, ...], report: Report) -> None:
    """Where an engine is killed, and in which micro-batch, is said of `kill` alone, and needs rows."""
    for step in steps:
        restart = child(step, "restart")
        if not isinstance(restart, Entries):
            continue
        kills = text_of(child(restart, "how")) == "kill"
        at_rest = text_of(child(restart, "at")) in (None, "rest")
        for key in ("at", "add", "batch"):
            if restart.get(key) is not None and not kills:
                report.add(restart.key(key), f"`{key}` is of `how: kill`: where the engine is killed")
        if kills and not at_rest and restart.get("add") is None:
            report.add(restart.key("at"), "no micro-batch to be killed in: `add` says which rows arrive in this step")
        if kills and at_rest:
            for key in ("add", "batch"):
                if restart.get(key) is not None:
                    message = f"`{key}`, and the engine is killed at rest: `at` says where in the micro-batch"
                    report.add(restart.key(key), message)
        damage = child(restart, "damage")
        for entry in entries_of(damage):
            if text_of(entry.value) == "state" and entry.key.value != "gone":
                report.add(entry.value, "`state` is a folder: it can only be `gone`")


def _backlog_not_once(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    trigger = text_of(child(case, "trigger"))
    for step in steps:
        trigger = text_of(child(child(child(step, "restart"), "change"), "trigger")) or trigger
        if trigger == "once" and isinstance(step, Entries) and step.get("backlog") is not None:
            report.add(step.key("backlog"), "`backlog` with trigger `once`, which ignores rate limits: one `add` each")


def _backlog_names_a_stream(steps: tuple[Node, ...], report: Report) -> None:
    for step in steps:
        backlog = child(step, "backlog")
        entries = items_of(backlog)
        if (
            backlog is not None
            and report.sound(backlog)
            and entries
            and not any(list(entries_of(entry)) for entry in entries)
        ):
            report.add(backlog, "no entry of `backlog` names a stream: write `idle: {}` where nothing arrives")


def _ends_at_an_error(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    """Steps behind an expected error are for the versions on which ``differs`` takes it back; without, for none."""
    for number, step in enumerate(steps, 1):
        error = child(child(step, "expect"), "error")
        if error is None:
            continue
        if number < len(steps) and not _taken_back(case, steps, number):
            message = f"step {number + 1} comes after the error that step {number} expects: the case ends there"
            report.add(steps[number], f"{message}, on every version")
        return


def _taken_back(case: Node, steps: tuple[Node, ...], number: int) -> bool:
    for entry in items_of(child(case, "differs")):
        for change in entries_of(child(entry, "steps")):
            error = child(change.value, "error")
            if step_number(change.key.value, steps) == number and isinstance(error, Scalar) and error.value is None:
                return True
    return False


def _expectations(case: Node, steps: tuple[Node, ...]) -> list[Node]:
    found = [child(step, "expect") for step in steps]
    for entry in items_of(child(case, "differs")):
        found += [child(entry, WAYS[0]), *(change.value for change in entries_of(child(entry, WAYS[1])))]
    return [expect for expect in found if expect is not None]


def _nothing_beside_an_error(expect: Node, report: Report) -> None:
    if not isinstance(expect, Entries) or not isinstance(expect.get("error"), Entries):
        return
    for entry in expect.entries:
        if entry.key.value != "error":
            report.add(
                entry.key, f"`{entry.key.value}` beside `error`: where an error is expected nothing else is checked"
            )


def _kinds_of_batches(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    """With every batch's kind given, `add` has one data batch, `backlog` one an entry and `idle` none.

    Not where a batch may be waiting for its replay: with `once` and `availableNow` the step after a restart runs it.
    """
    triggers = {text_of(child(case, "trigger"))}
    triggers |= {text_of(child(child(child(step, "restart"), "change"), "trigger")) for step in steps}
    if not triggers <= {None, "default"}:
        return
    for step in steps:
        batches = child(child(step, "expect"), "batches")
        kinds = [text_of(child(batch, "kind")) for batch in items_of(batches)]
        expected = _data_batches(step)
        if batches is None or expected is None or not report.sound(batches) or None in kinds:
            continue
        if kinds.count("data") != expected[0]:
            found = f"{kinds.count('data')} data batch{'es' * (kinds.count('data') != 1)}"
            report.add(batches, f"{found} here: {expected[1]}")


def _data_batches(step: Node) -> tuple[int, str] | None:
    if child(step, "add") is not None:
        return 1, "the rows of `add` arrive in exactly 1"
    backlog = child(step, "backlog")
    if isinstance(backlog, Items):
        return len(backlog.items), f"`backlog` has one for each of its {len(backlog.items)} entries"
    return (0, "in `idle` nothing arrives") if child(step, "idle") is not None else None
