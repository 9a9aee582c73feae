"""The grammar of policy cases. The policies and throttles come from ``conformance.policies``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from conformance.language.case_file import CASE
from conformance.language.compound_shapes import (
    Alternatives,
    ByKind,
    Definition,
    EmptyMapping,
    Key,
    ListOf,
    MapOf,
    Record,
)
from conformance.language.shape import Boolean, Choice, Fraction, Integer, Shape, Text
from conformance.policies.catalogue import POLICIES
from conformance.policies.policy import PolicyParameter
from conformance.policies.throttling import THROTTLES
from conformance.policies.trace import ClockUnit

INPUT = Text("an input name: letters, digits, _ and -, starting with a letter", r"^[A-Za-z_][A-Za-z0-9_-]*$")
WATERMARK = Integer(nullable=True)
_INPUTS = ListOf(INPUT, "a list of inputs", at_least=1, distinct=True)


def _parameter(name: str, parameter: PolicyParameter) -> Shape:
    if parameter.words:
        return Choice(name, parameter.words)
    match parameter.kind:
        case "share":
            return Fraction()
        case "whole":
            return Integer()
        case "positive":
            return Integer(1)
        case "count":
            return Integer(0)


def _by_name(kind: str, known: Mapping[str, tuple[str, Mapping[str, PolicyParameter]]]) -> Alternatives:
    """One of several names, each with its parameters: ``{with-fixed-lag: {lag: 10}}``."""
    records = {}
    for name, (meaning, parameters) in known.items():
        keys = {
            one: Key(_parameter(one, parameter), parameter.meaning, required=parameter.required)
            for one, parameter in parameters.items()
        }
        arguments: Shape = Record(f"`{name}`", keys, description=meaning) if keys else EmptyMapping(name)
        records[name] = Record(f"the {kind}", {name: Key(arguments, meaning, required=True)}, description=meaning)
    return Alternatives(kind, kind, records, listed=False)


_POLICY = _by_name("policy", {name: (known.meaning, known.parameters) for name, known in POLICIES.items()})
_THROTTLE = _by_name("throttle", {name: (known.meaning, known.parameters) for name, known in THROTTLES.items()})

_EXPECTATION = Record(
    "`expect`",
    {
        "watermark": Key(
            ByKind(
                "a whole number, null, or a mapping from input to one of these",
                scalar=WATERMARK,
                entries=MapOf(INPUT, WATERMARK, "a mapping from input to watermark", at_least=1),
            ),
            "The watermark of the input according to its policy; null if there is none yet. By name if there are several inputs.",
        ),
        "emitted": Key(WATERMARK, "The watermark sent to operators here; null if none is sent."),
        "downstream": Key(WATERMARK, "The watermark of the operators; null if there is none yet."),
        "late": Key(Boolean(), "Whether the event is late and dropped."),
        "closed": Key(
            ListOf(Integer(), "a list of ends of windows", distinct=True),
            "Ends of the non-empty windows that are complete now, in order.",
        ),
        "idle": Key(
            ListOf(INPUT, "a list of inputs", distinct=True), "The inputs that the watermark does not wait for."
        ),
    },
    at_least=1,
    description="The expected state after this entry; absent keys are not checked.",
)
_ENTRIES: Mapping[str, tuple[Shape, str]] = {
    "event": (
        ByKind(
            "an event time, or {at, input}",
            scalar=Integer(),
            entries=Record(
                "`event`",
                {
                    "at": Key(Integer(), "the event time", required=True),
                    "input": Key(INPUT, "The input on which it arrives; the first if absent."),
                },
            ),
        ),
        "An event arrives; its event time is in the unit of the policy, usually milliseconds.",
    ),
    "clock": (Integer(), "The clock shows this from here on, in `clockUnit`; this alone moves no watermark."),
    "idle": (
        Record("`idle`", {"input": Key(INPUT, "The input to poll; all of them if absent.")}),
        "The engine polls, and nothing has arrived.",
    ),
    "batch": (
        EmptyMapping("batch"),
        "What has arrived so far was one batch: Spark's micro-batch ends; Flink and Beam emit.",
    ),
}
_STEP = Alternatives(
    "entry",
    "entry",
    {
        name: Record(f"an entry with `{name}`", {name: Key(shape, meaning, required=True)}, description=meaning)
        for name, (shape, meaning) in _ENTRIES.items()
    },
    common={
        "name": Key(Text("an entry name"), "A description of the entry."),
        "expect": Key(_EXPECTATION, _EXPECTATION.description),
    },
)

COMMON_KEYS = ("title", "strength", "links", "why", "mirrors", "tags")
"""Keys of every kind of case."""

POLICY_CASE = Record(
    "a policy case",
    {
        **{key: CASE.keys[key] for key in COMMON_KEYS},
        "policy": Key(_POLICY, "the policy under test and its parameters", required=True),
        "throttle": Key(
            _THROTTLE, "Which watermarks are emitted; every new one if absent. Only for policies of Hazelcast Jet."
        ),
        "inputs": Key(_INPUTS, "All inputs, including those that never see an event; one if absent."),
        "clockUnit": Key(Choice("unit", get_args(ClockUnit)), "The unit of `clock`; `ms` if absent."),
        "window": Key(Integer(1), "The length of tumbling windows, in the unit of event times; no windows if absent."),
        "trace": Key(
            ListOf(Definition("entry", lambda: _STEP), "a list of entries", at_least=1),
            "what happens, in order",
            required=True,
        ),
    },
)
