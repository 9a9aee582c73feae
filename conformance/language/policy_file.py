"""A policy case: how a document becomes a ``PolicyCase``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.language.case_file import digest
from conformance.language.node import Entries, Node, child, entries_of, items_of
from conformance.language.policy_checks import check_policy_case, inputs_of, named
from conformance.language.policy_shapes import COMMON_KEYS, POLICY_CASE
from conformance.language.problem import InvalidCase, Report
from conformance.language.shape import Json
from conformance.policies.case import PolicyCase, PolicyExpectation, PolicyStep
from conformance.policies.trace import Boundary, ClockReading, Event, IdlePoll, Trace, TraceEntry

if TYPE_CHECKING:
    from conformance.language.catalogue import Catalogue

POLICY_KEYS = ("policy", "trace")
"""Top-level keys that only a policy case has."""


def is_policy_case(node: Node) -> bool:
    return isinstance(node, Entries) and any(node.get(key) is not None for key in POLICY_KEYS)


def policy_case_of(node: Node, report: Report, id: str, catalogue: Catalogue | None) -> PolicyCase:
    """The case that a document describes.

    Raises:
        InvalidCase: with every problem.
    """
    POLICY_CASE.check(node, report)
    check_policy_case(node, report, catalogue)
    if report.problems:
        raise InvalidCase(report.problems)
    written: Json = node.plain()
    inputs = inputs_of(node)
    steps = tuple(_step(number, one, inputs[0]) for number, one in enumerate(written["trace"], 1))
    policy, given = named(child(node, "policy"))
    throttle = child(node, "throttle")
    return PolicyCase(
        id=id,
        path=report.path,
        digest=digest(written),
        lines=_lines(node),
        **{name: POLICY_CASE.keys[name].shape.value(written[name]) for name in COMMON_KEYS if name in written},
        policy=policy,
        given=given,
        throttle=None if throttle is None else named(throttle),
        trace=Trace(
            tuple(step.entry for step in steps), inputs, written.get("clockUnit", "ms"), window=written.get("window")
        ),
        steps=steps,
    )


def _step(number: int, written: dict[str, Json], first: str) -> PolicyStep:
    expect = written.get("expect")
    return PolicyStep(
        number=number,
        entry=_entry(written, first),
        name=written.get("name"),
        expect=None if expect is None else PolicyExpectation.model_validate(expect),
    )


def _entry(written: dict[str, Json], first: str) -> TraceEntry:
    if "event" in written:
        event = written["event"]
        return Event(event["at"], event.get("input", first)) if isinstance(event, dict) else Event(event, first)
    if "clock" in written:
        return ClockReading(written["clock"])
    return IdlePoll(written["idle"].get("input")) if "idle" in written else Boundary()


def _lines(node: Node) -> dict[str, int]:
    """Every top-level key, ``trace.3``, and ``trace.3.expect.late``."""
    found: dict[str, int] = {}
    for entry in entries_of(node):
        found[str(entry.key.value)] = entry.key.line
    for number, step in enumerate(items_of(child(node, "trace")), 1):
        found[f"trace.{number}"] = step.line
        for entry in entries_of(child(step, "expect")):
            found[f"trace.{number}.expect.{entry.key.value}"] = entry.key.line
    return found
