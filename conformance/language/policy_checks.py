"""Rules for policy cases that relate several places to each other. Only valid places are checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from conformance.language.catalogue_checks import check_policy_catalogue_ids
from conformance.language.node import Entries, Node, Scalar, child, entries_of, items_of, text_of
from conformance.language.problem import Report
from conformance.language.shape import Json
from conformance.language.suggest import unknown
from conformance.policies.catalogue import POLICIES, rules_for
from conformance.policies.policy import InvalidParameter
from conformance.policies.trace import INPUT

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue


def check_policy_case(case: Node, report: Report, catalogue: Catalogue | None) -> None:
    """Report every inconsistency."""
    _check_policy(case, report)
    inputs = inputs_of(case)
    for step in items_of(child(case, "trace")):
        _check_inputs(step, inputs, report)
        _check_expectation(step, case, inputs, report)
    if catalogue is not None:
        check_policy_catalogue_ids(case, report, catalogue)


def inputs_of(case: Node) -> tuple[str, ...]:
    """The inputs of the trace; one unnamed input if none are given."""
    return tuple(dict.fromkeys(filter(None, map(text_of, items_of(child(case, "inputs")))))) or (INPUT,)


def named(node: Node | None) -> tuple[str, dict[str, Json]]:
    """The name of a policy or throttle, and its parameters."""
    entry = next(entries_of(node))
    given: dict[str, Json] = entry.value.plain() if isinstance(entry.value, Entries) else {}
    return str(entry.key.value), given


def _check_policy(case: Node, report: Report) -> None:
    node, throttle = child(case, "policy"), child(case, "throttle")
    if not report.is_valid(node) or (throttle is not None and not report.is_valid(throttle)):
        return
    name, given = named(node)
    entry = next(entries_of(node))
    if throttle is not None and not POLICIES[name].throttled:
        takers = ", ".join(one for one, known in POLICIES.items() if known.throttled)
        report.add(throttle, f"{name} takes no throttle; only these do: {takers}")
        return
    if (
        "release" in POLICIES[name].parameters
        and "idleTimeout" in given
        and given.get("release", "jet-0.5") == "jet-0.5"
    ):
        place = entry.value.key("idleTimeout") if isinstance(entry.value, Entries) else entry.value
        report.add(place, "Jet 0.5 has no `idleTimeout`: add `release: jet-0.6`")
    try:
        rules_for(name, given, None if throttle is None else named(throttle))
    except InvalidParameter as wrong:
        report.add(entry.value if throttle is None else throttle, str(wrong))


def _check_inputs(step: Node, inputs: tuple[str, ...], report: Report) -> None:
    expected = child(step, "expect")
    found = [child(child(step, "event"), "input"), child(child(step, "idle"), "input")]
    found += items_of(child(expected, "idle"))
    found += [entry.key for entry in entries_of(child(expected, "watermark"))]
    for node in found:
        name = text_of(node)
        if node is not None and name is not None and name not in inputs and report.is_valid(node):
            report.add(node, unknown("input", name, inputs))


def _check_expectation(step: Node, case: Node, inputs: tuple[str, ...], report: Report) -> None:
    expected = child(step, "expect")
    if not isinstance(expected, Entries):
        return
    for key, message in _misplaced(step, case, expected, inputs):
        report.add(expected.key(key), message)


def _misplaced(step: Node, case: Node, expected: Entries, inputs: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if child(step, "event") is None and expected.get("late") is not None:
        yield "late", "`late` applies to `event` entries only"
    if child(case, "window") is None and expected.get("closed") is not None:
        yield "closed", "`closed` requires windows: set their length in `window`"
    if len(inputs) > 1 and isinstance(expected.get("watermark"), Scalar):
        yield (
            "watermark",
            f"ambiguous with the inputs {', '.join(inputs)}: write `{{{inputs[0]}: …}}`, or use `downstream`",
        )
