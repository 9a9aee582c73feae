"""Cases on watermark policies: what may stand where. The policies and throttles come from ``conformance.policies``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from conformance.language.case_file import CASE
from conformance.language.nested import ByKind, Key, ListOf, MapOf, Named, Record, Variants, nothing_in
from conformance.language.shape import Choice, Flag, Shape, Share, Text, Whole
from conformance.policies.catalogue import POLICIES
from conformance.policies.policy import PolicyParameter
from conformance.policies.throttling import THROTTLES
from conformance.policies.trace import ClockUnit

INPUT = Text("the name of an input: letters, digits, _ and -, a letter first", r"^[A-Za-z_][A-Za-z0-9_-]*$")
WATERMARK = Whole(nullable=True)
_INPUTS = ListOf(INPUT, "a list of inputs", at_least=1, distinct=True)


def _parameter(name: str, parameter: PolicyParameter) -> Shape:
    if parameter.words:
        return Choice(name, parameter.words)
    match parameter.kind:
        case "share":
            return Share()
        case "whole":
            return Whole()
        case "positive":
            return Whole(1)
        case "count":
            return Whole(0)


def _named(kind: str, meanings: Mapping[str, tuple[str, Mapping[str, PolicyParameter]]]) -> Variants:
    """One of several names, each with its parameters: ``{with-fixed-lag: {lag: 10}}``."""
    records = {}
    for name, (meaning, parameters) in meanings.items():
        keys = {
            one: Key(_parameter(one, parameter), parameter.meaning, required=parameter.required)
            for one, parameter in parameters.items()
        }
        of_it: Shape = Record(name, keys, meaning=meaning) if keys else nothing_in(name)
        records[name] = Record(f"the {kind}", {name: Key(of_it, meaning, required=True)}, meaning=meaning)
    return Variants(kind, f"{kind}", records)


_POLICY = _named("policy", {name: (known.meaning, known.parameters) for name, known in POLICIES.items()})
_THROTTLE = _named("throttle", {name: (known.meaning, known.parameters) for name, known in THROTTLES.items()})

_EXPECTATION = Record(
    "expect",
    {
        "watermark": Key(
            ByKind(
                "a whole number, null, or a mapping from input to one of these",
                scalar=WATERMARK,
                entries=MapOf(INPUT, WATERMARK, "a mapping from input to watermark", at_least=1),
            ),
            "The watermark of the input as its policy has it; null where there is none yet. By name with several inputs.",
        ),
        "emitted": Key(WATERMARK, "The watermark that operators are sent here; null where none is."),
        "downstream": Key(WATERMARK, "The watermark that operators have; null where there is none yet."),
        "late": Key(Flag(), "Whether the event is dropped."),
        "closed": Key(
            ListOf(Whole(), "a list of ends of windows", distinct=True),
            "Ends of the windows with events that are complete now, in order.",
        ),
        "idle": Key(ListOf(INPUT, "a list of inputs", distinct=True), "The inputs that nobody waits for."),
    },
    at_least=1,
    meaning="What this entry must lead to; keys that are absent are not checked.",
)
_ENTRIES: Mapping[str, tuple[Shape, str]] = {
    "event": (
        ByKind(
            "an event time, or {at, input}",
            scalar=Whole(),
            entries=Record(
                "event",
                {
                    "at": Key(Whole(), "the event time", required=True),
                    "input": Key(INPUT, "The input on which it arrives; the first where absent."),
                },
            ),
        ),
        "An event arrives; its event time is in the unit of the policy, mostly milliseconds.",
    ),
    "clock": (Whole(), "From here on the clock shows this, in `clockUnit`; it moves nothing by itself."),
    "idle": (
        Record("idle", {"input": Key(INPUT, "The input that is looked at; all of them where absent.")}),
        "The engine looks, and nothing has arrived.",
    ),
    "batch": (nothing_in("batch"), "What has arrived was one batch: Spark's micro-batch ends, Flink and Beam emit."),
}
_STEP = Variants(
    "step",
    "entry",
    {
        name: Record(f"a step with {name}", {name: Key(shape, meaning, required=True)}, meaning=meaning)
        for name, (shape, meaning) in _ENTRIES.items()
    },
    common={
        "name": Key(Text("the name of a step"), "What happens here, in words."),
        "expect": Key(_EXPECTATION, _EXPECTATION.meaning),
    },
)

POLICY_CASE = Record(
    "a case on a policy",
    {
        **{key: CASE.keys[key] for key in ("title", "strength", "links", "why", "mirrors", "tags")},
        "policy": Key(_POLICY, "the policy under test and its parameters", required=True),
        "throttle": Key(
            _THROTTLE, "When a watermark is emitted; every new one where absent. Hazelcast Jet's policies only."
        ),
        "inputs": Key(_INPUTS, "All inputs there are, those that never see an event too; one where absent."),
        "clockUnit": Key(Choice("unit", get_args(ClockUnit)), "The unit of `clock`: `ms` where absent."),
        "window": Key(Whole(1), "The length of tumbling windows, in the unit of event times; in none where absent."),
        "trace": Key(
            ListOf(Named("entry", lambda: _STEP), "a list of entries", at_least=1),
            "what happens, in order",
            required=True,
        ),
    },
)
