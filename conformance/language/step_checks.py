"""Rules for the sequence of steps: what cannot happen, and what would never be checked."""

from __future__ import annotations

from conformance.language.node import Entries, Items, Node, Scalar, child, entries_of, items_of, text_of
from conformance.language.problem import Report


def check_steps(case: Node, report: Report) -> None:
    steps = items_of(child(case, "steps"))
    _check_names(steps, report)
    _check_start_is_first(steps, report)
    _check_something_to_replay(steps, report)
    _check_kills(steps, report)
    _check_backlog_without_once(case, steps, report)
    _check_backlog_names_a_stream(steps, report)
    _check_ends_at_an_error(case, steps, report)
    _check_kinds_of_batches(case, steps, report)
    for expect in _expectations(case, steps):
        _check_error_is_alone(expect, report)


def step_number(reference: object, steps: tuple[Node, ...]) -> int | None:
    """The number of the step with this number or name; None if there is no such step."""
    if isinstance(reference, int) and not isinstance(reference, bool):
        return reference if 1 <= reference <= len(steps) else None
    names = [text_of(child(step, "name")) for step in steps]
    return names.index(reference) + 1 if isinstance(reference, str) and reference in names else None


def _check_names(steps: tuple[Node, ...], report: Report) -> None:
    seen: dict[str, int] = {}
    for number, step in enumerate(steps, 1):
        node = child(step, "name")
        name = text_of(node)
        if node is None or name is None:
            continue
        if name in seen:
            report.add(node, f"duplicate step name {name!r}, first used for step {seen[name]}")
        seen.setdefault(name, number)


def _check_start_is_first(steps: tuple[Node, ...], report: Report) -> None:
    for number, step in enumerate(steps[1:], 2):
        if isinstance(step, Entries) and step.get("start") is not None:
            report.add(step.key("start"), f"`start` must be the first step, but is step {number}")


def _check_something_to_replay(steps: tuple[Node, ...], report: Report) -> None:
    for step in steps:
        if any(child(step, action) is not None for action in ("add", "backlog")):
            return
        if child(child(step, "restart"), "add") is not None:
            return
        restart = child(step, "restart")
        how = child(restart, "how") if isinstance(restart, Entries) else restart
        if how is not None and text_of(how) == "crash-before-commit":
            report.add(how, "crash-before-commit replays the last batch, but no batch has run before this step")
            return


def _check_kills(steps: tuple[Node, ...], report: Report) -> None:
    """`at`, `add` and `batch` apply to `kill` only, and a kill within a micro-batch needs rows."""
    for step in steps:
        restart = child(step, "restart")
        if not isinstance(restart, Entries):
            continue
        kills = text_of(child(restart, "how")) == "kill"
        at_rest = text_of(child(restart, "at")) in (None, "rest")
        for key in ("at", "add", "batch"):
            if restart.get(key) is not None and not kills:
                report.add(restart.key(key), f"`{key}` requires `how: kill`")
        if kills and not at_rest and restart.get("add") is None:
            report.add(
                restart.key("at"), "`at` requires `add`: without rows there is no micro-batch to kill the engine in"
            )
        if kills and at_rest:
            for key in ("add", "batch"):
                if restart.get(key) is not None:
                    message = f"`{key}` requires `at`, which says when in the micro-batch to kill the engine"
                    report.add(restart.key(key), message)
        damage = child(restart, "damage")
        for entry in entries_of(damage):
            if text_of(entry.value) == "state" and entry.key.value != "gone":
                report.add(entry.value, "`state` is a folder and can only be `gone`")


def _check_backlog_without_once(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    trigger = text_of(child(case, "trigger"))
    for step in steps:
        trigger = text_of(child(child(child(step, "restart"), "change"), "trigger")) or trigger
        if trigger == "once" and isinstance(step, Entries) and step.get("backlog") is not None:
            message = "`backlog` does not work with trigger `once`, which ignores rate limits: use one `add` per entry"
            report.add(step.key("backlog"), message)


def _check_backlog_names_a_stream(steps: tuple[Node, ...], report: Report) -> None:
    for step in steps:
        backlog = child(step, "backlog")
        entries = items_of(backlog)
        empty = entries and not any(list(entries_of(entry)) for entry in entries)
        if backlog is not None and empty and report.is_valid(backlog):
            report.add(backlog, "no entry of `backlog` names a stream; write `idle: {}` if nothing arrives")


def _check_ends_at_an_error(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    """Steps after an expected error need a version for which ``differs`` removes the error."""
    for number, step in enumerate(steps, 1):
        error = child(child(step, "expect"), "error")
        if error is None:
            continue
        if number < len(steps) and not _removed_on_some_version(case, steps, number):
            message = f"step {number + 1} never runs: on every version, the case ends at the error of step {number}"
            report.add(steps[number], message)
        return


def _removed_on_some_version(case: Node, steps: tuple[Node, ...], number: int) -> bool:
    for entry in items_of(child(case, "differs")):
        for change in entries_of(child(entry, "steps")):
            error = child(change.value, "error")
            if step_number(change.key.value, steps) == number and isinstance(error, Scalar) and error.value is None:
                return True
    return False


def _expectations(case: Node, steps: tuple[Node, ...]) -> list[Node]:
    found = [child(step, "expect") for step in steps]
    for entry in items_of(child(case, "differs")):
        found += [child(entry, "expect"), *(change.value for change in entries_of(child(entry, "steps")))]
    return [expect for expect in found if expect is not None]


def _check_error_is_alone(expect: Node, report: Report) -> None:
    if not isinstance(expect, Entries) or not isinstance(expect.get("error"), Entries):
        return
    for entry in expect.entries:
        if entry.key.value != "error":
            report.add(entry.key, f"remove `{entry.key.value}`: with an expected `error`, nothing else is checked")


def _check_kinds_of_batches(case: Node, steps: tuple[Node, ...], report: Report) -> None:
    """If every batch has a kind: `add` has one data batch, `backlog` one per entry and `idle` none.

    Not checked with `once` and `availableNow`, where the step after a restart also runs the replay, and with
    `maxOffsetsPerTrigger`, which cuts what arrives.
    """
    if any(child(stream.value, "maxOffsetsPerTrigger") for stream in entries_of(child(case, "streams"))):
        return
    triggers = {text_of(child(case, "trigger"))}
    triggers |= {text_of(child(child(child(step, "restart"), "change"), "trigger")) for step in steps}
    if not triggers <= {None, "default"}:
        return
    for step in steps:
        batches = child(child(step, "expect"), "batches")
        kinds = [text_of(child(batch, "kind")) for batch in items_of(batches)]
        expected = _data_batches(step)
        if batches is None or expected is None or not report.is_valid(batches) or None in kinds:
            continue
        number, why = expected
        if kinds.count("data") != number:
            report.add(batches, f"data batches listed: {kinds.count('data')}, expected {number}: {why}")


def _data_batches(step: Node) -> tuple[int, str] | None:
    if child(step, "add") is not None:
        return 1, "the rows of `add` arrive in one batch"
    backlog = child(step, "backlog")
    if isinstance(backlog, Items):
        return len(backlog.items), "one per entry of `backlog`"
    return (0, "nothing arrives in `idle`") if child(step, "idle") is not None else None
