"""Policy cases: their grammar, the rules that relate several places, and how a document becomes a ``PolicyCase``."""

from collections.abc import Mapping
from typing import get_args

from conformance.core.data import Json
from conformance.core.wording import unknown
from conformance.language import shape as shapes
from conformance.language import source as nodes
from conformance.language.case_file import CASE, digest, lines_of
from conformance.language.catalogue import Catalogue, check_common_ids
from conformance.language.shape import Alternatives, ByKind, Choice, Key, ListOf, Record, Shape, Text
from conformance.language.source import Entries, InvalidCase, Node, ProblemReport, child, entries_of, items_of, text_of
from conformance.policies.case import PolicyCase, PolicyExpectation, PolicyStep
from conformance.policies.engines import POLICIES, PolicyDefinition, rules_for
from conformance.policies.rules import THROTTLES, InvalidParameter, ThrottleDefinition
from conformance.policies.trace import INPUT, BatchBoundary, ClockReading, ClockUnit, Event, IdlePoll, Trace, TraceEntry

INPUT_NAME = Text("an input name: letters, digits, _ and -, starting with a letter", r"^[A-Za-z_][A-Za-z0-9_-]*$")
WATERMARK = shapes.integer(nullable=True)
_INPUTS = ListOf(INPUT_NAME, "a list of inputs", at_least=1, distinct=True)
_NUMBERS: Mapping[str, Shape] = {
    "share": shapes.FRACTION,
    "whole": shapes.integer(),
    "positive": shapes.integer(1),
    "count": shapes.integer(0),
}


def _by_name(kind: str, known: Mapping[str, PolicyDefinition] | Mapping[str, ThrottleDefinition]) -> Alternatives:
    """Make the shape of a name with its parameters: ``{with-fixed-lag: {lag: 10}}``."""
    records = {}
    for name, definition in known.items():
        keys = {}
        for key, parameter in definition.parameters.items():
            shape = Choice(key, parameter.words) if parameter.words else _NUMBERS[parameter.kind]
            keys[key] = Key(shape, parameter.meaning, required=parameter.required)
        meaning = definition.meaning
        arguments: Shape = Record(f"`{name}`", keys, description=meaning) if keys else shapes.EmptyMapping(name)
        records[name] = Record(f"the {kind}", {name: Key(arguments, meaning, required=True)}, description=meaning)
    return Alternatives(kind, kind, records, listed=False)


_EXPECTATION = Record(
    "`expect`",
    {
        "watermark": Key(
            ByKind(
                "a whole number, null, or a mapping from input to one of these",
                scalar=WATERMARK,
                entries=shapes.MapOf(INPUT_NAME, WATERMARK, "a mapping from input to watermark", at_least=1),
            ),
            "The watermark of the input according to its policy; null if there is none yet. By name if there are several inputs.",
        ),
        "emitted": Key(WATERMARK, "The watermark sent to operators here; null if none is sent."),
        "downstream": Key(WATERMARK, "The watermark of the operators; null if there is none yet."),
        "late": Key(shapes.BOOLEAN, "Whether the event is late and dropped."),
        "closed": Key(
            ListOf(shapes.integer(), "a list of ends of windows", distinct=True),
            "Ends of the non-empty windows that are complete now, in order.",
        ),
        "idle": Key(
            ListOf(INPUT_NAME, "a list of inputs", distinct=True), "The inputs that the watermark does not wait for."
        ),
    },
    at_least=1,
    description="The expected state after this entry; absent keys are not checked.",
)
_ENTRIES: Mapping[str, tuple[Shape, str]] = {
    "event": (
        ByKind(
            "an event time, or {at, input}",
            scalar=shapes.integer(),
            entries=Record(
                "`event`",
                {
                    "at": Key(shapes.integer(), "the event time", required=True),
                    "input": Key(INPUT_NAME, "The input on which it arrives; the first if absent."),
                },
            ),
        ),
        "An event arrives; its event time is in the unit of the policy, usually milliseconds.",
    ),
    "clock": (shapes.integer(), "The clock shows this from here on, in `clockUnit`; this alone moves no watermark."),
    "idle": (
        Record("`idle`", {"input": Key(INPUT_NAME, "The input to poll; all of them if absent.")}),
        "The engine polls, and nothing has arrived.",
    ),
    "batch": (
        shapes.EmptyMapping("batch"),
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
        "policy": Key(_by_name("policy", POLICIES), "the policy under test and its parameters", required=True),
        "throttle": Key(
            _by_name("throttle", THROTTLES),
            "Which watermarks are emitted; every new one if absent. Only for policies of Hazelcast Jet.",
        ),
        "inputs": Key(_INPUTS, "All inputs, including those that never see an event; one if absent."),
        "clockUnit": Key(Choice("unit", get_args(ClockUnit)), "The unit of `clock`; `ms` if absent."),
        "window": Key(
            shapes.integer(1), "The length of tumbling windows, in the unit of event times; no windows if absent."
        ),
        "trace": Key(
            ListOf(shapes.Definition(_STEP, "entry"), "a list of entries", at_least=1),
            "what happens, in order",
            required=True,
        ),
    },
)


def named(node: Node | None) -> tuple[str, dict[str, Json]]:
    """Return the name of a policy or throttle, and its parameters."""
    entry = next(entries_of(node))
    given: dict[str, Json] = entry.value.plain() if isinstance(entry.value, Entries) else {}
    return str(entry.key.value), given


def _check_policy(case: Node, report: ProblemReport) -> None:
    node, throttle = child(case, "policy"), child(case, "throttle")
    if not report.is_valid(node) or (throttle is not None and not report.is_valid(throttle)):
        return
    name, given = named(node)
    arguments = next(entries_of(node)).value
    if throttle is not None and not POLICIES[name].throttled:
        takers = ", ".join(policy for policy, known in POLICIES.items() if known.throttled)
        report.add(throttle, f"{name} takes no throttle; only these do: {takers}")
        return
    if "release" in POLICIES[name].parameters and given.get("release", "jet-0.5") == "jet-0.5":
        report.forbid(arguments, "idleTimeout", "Jet 0.5 has no `idleTimeout`: add `release: jet-0.6`")
    try:
        rules_for(name, given, None if throttle is None else named(throttle))
    except InvalidParameter as wrong:
        report.add(arguments if throttle is None else throttle, str(wrong))


def _check_step(step: Node, case: Node, inputs: tuple[str, ...], report: ProblemReport) -> None:
    expected = child(step, "expect")
    named_inputs = [child(step, "event", "input"), child(step, "idle", "input"), *items_of(expected, "idle")]
    named_inputs += [entry.key for entry in entries_of(expected, "watermark")]
    for node in named_inputs:
        name = text_of(node)
        if node is not None and name is not None and name not in inputs and report.is_valid(node):
            report.add(node, unknown("input", name, inputs))
    if child(step, "event") is None:
        report.forbid(expected, "late", "`late` applies to `event` entries only")
    if child(case, "window") is None:
        report.forbid(expected, "closed", "`closed` requires windows: set their length in `window`")
    if len(inputs) > 1 and isinstance(child(expected, "watermark"), nodes.Scalar):
        ambiguous = f"ambiguous with the inputs {', '.join(inputs)}"
        report.forbid(expected, "watermark", f"{ambiguous}: write `{{{inputs[0]}: …}}`, or use `downstream`")


POLICY_KEYS = ("policy", "trace")
"""Top-level keys that only a policy case has."""


def is_policy_case(node: Node) -> bool:
    return any(child(node, key) is not None for key in POLICY_KEYS)


def policy_case_of(node: Node, report: ProblemReport, id: str, catalogue: Catalogue | None) -> PolicyCase:
    """Return the case that a document describes; raise `InvalidCase` with every problem."""
    POLICY_CASE.check(node, report)
    _check_policy(node, report)
    inputs = tuple(dict.fromkeys(filter(None, map(text_of, items_of(node, "inputs"))))) or (INPUT,)
    for step in items_of(node, "trace"):
        _check_step(step, node, inputs, report)
    if catalogue is not None:
        check_common_ids(node, report, catalogue)
    if report.problems:
        raise InvalidCase(report.problems)
    written: Json = node.plain()
    steps = tuple(
        PolicyStep(
            number=number,
            entry=_entry(entry, inputs[0]),
            name=entry.get("name"),
            expect=PolicyExpectation.model_validate(entry["expect"]) if "expect" in entry else None,
        )
        for number, entry in enumerate(written["trace"], 1)
    )
    entries = tuple(step.entry for step in steps)
    policy, given = named(child(node, "policy"))
    throttle = child(node, "throttle")
    return PolicyCase(
        id=id,
        path=report.path,
        digest=digest(written),
        lines=dict(lines_of(node)),
        **{name: POLICY_CASE.keys[name].shape.value(written[name]) for name in COMMON_KEYS if name in written},
        policy=policy,
        given=given,
        throttle=None if throttle is None else named(throttle),
        trace=Trace(entries, inputs, written.get("clockUnit", "ms"), window=written.get("window")),
        steps=steps,
    )


def _entry(written: dict[str, Json], first: str) -> TraceEntry:
    if "event" in written:
        event = written["event"]
        return Event(event["at"], event.get("input", first)) if isinstance(event, dict) else Event(event, first)
    if "clock" in written:
        return ClockReading(written["clock"])
    return IdlePoll(written["idle"].get("input")) if "idle" in written else BatchBoundary()
