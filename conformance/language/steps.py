"""Steps: exactly one action each, then an optional name and expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from conformance.core.case import (
    Add,
    Backlog,
    CheckpointPart,
    Damage,
    HowRestarted,
    Idle,
    KillPoint,
    OutputMode,
    Restart,
    Start,
    Trigger,
)
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
from conformance.language.expectations import EXPECTATION
from conformance.language.pipelines import PIPELINE
from conformance.language.shape import Choice, ConfValue, Constant, Converted, Integer, Text
from conformance.language.streams import ARRIVAL, ARRIVING, NAME

_CONF = MapOf(
    Text("the name of a Spark conf: spark.…", r"^spark\.[A-Za-z0-9_.-]+$"),
    ConfValue(),
    "a mapping from Spark conf to value",
)
CONF = Definition("conf", lambda: _CONF)
OUTPUT_MODE = Choice("output mode", get_args(OutputMode))
TRIGGER = Choice("trigger", get_args(Trigger))

_HOW = Choice("way to restart", get_args(HowRestarted))
_CHANGE = Record(
    "`change`",
    {
        "conf": Key(CONF, "Spark SQL confs set before the query starts again."),
        "outputMode": Key(OUTPUT_MODE, "Another output mode."),
        "trigger": Key(TRIGGER, "Another trigger."),
        "query": Key(PIPELINE, "Another query on the same checkpoint."),
        "partitions": Key(
            MapOf(NAME, Integer(minimum=2), "a mapping from stream to the partitions of its topic", at_least=1),
            "Stream with `source: kafka` → how many partitions its topic has from here on; more than before.",
        ),
    },
    at_least=1,
    description="What changes at the restart.",
)
_PART = Choice("part of a checkpoint", get_args(CheckpointPart))
_DAMAGE = Record(
    "`damage`",
    {
        how: Key(
            _PART,
            f"The part to {what}: the newest entry of a log, the newest version of each state store or its newest snapshot, "
            "the metadata file, or the state folder.",
        )
        for how, what in zip(get_args(Damage), ("remove", "empty", "truncate to half its length"), strict=True)
    },
    at_least=1,
    description="What is damaged in the checkpoint while no engine runs.",
)
_RESTART = Record(
    "`restart`",
    {
        "how": Key(_HOW, "how to stop the query and start it again", required=True),
        "change": Key(_CHANGE, _CHANGE.description),
        "at": Key(
            Choice("point", get_args(KillPoint)),
            "When `kill` kills the engine: `rest` (between micro-batches), or in a micro-batch of the rows of `add`: "
            "`planned` (its offsets are logged), `running` (one of its partitions has run), `emitted` (its rows are out) "
            "or `committed` (and the next one is not planned).",
        ),
        "add": Key(ARRIVAL, "Rows that arrive in one micro-batch before the engine is killed."),
        "batch": Key(
            Integer(minimum=1), "The micro-batch of the step, from 1, in which the engine is killed; 1 if absent."
        ),
        "damage": Key(_DAMAGE, _DAMAGE.description),
        "repartition": Key(
            Integer(minimum=1),
            "Into how many partitions Spark divides the state before the query starts again (4.2+, an experimental API).",
        ),
        "agedOut": Key(
            Constant(True), "Whether the topics lose all their records before the query starts again.", field="aged_out"
        ),
    },
)


def _aligned(entries: Sequence[Mapping[str, Any]]) -> Backlog:
    """A stream that an entry does not name gets a batch without rows, so that entries stay aligned."""
    streams = list(dict.fromkeys(stream for entry in entries for stream in entry))
    nothing = ARRIVING.value([])
    return Backlog(entries=tuple({stream: entry.get(stream, nothing) for stream in streams} for entry in entries))


_ENTRY = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}')
_ACTIONS = {
    "start": (
        Converted(EmptyMapping("start"), lambda _: Start()),
        "Start the query. Implicit before the first other step; write it to expect an error or a plan.",
    ),
    "add": (
        Converted(ARRIVAL, lambda arrival: Add(streams=arrival)),
        "Rows that arrive in one micro-batch, on any number of streams; then the engine runs until idle. "
        "A stream that is not named has nothing new; one named with [] has a batch without rows.",
    ),
    "backlog": (
        Converted(ListOf(_ENTRY, "a list of entries, each a mapping from stream to rows", at_least=1), _aligned),
        "One micro-batch per entry with no idle gap between them; then the engine runs until idle.",
    ),
    "idle": (
        Converted(EmptyMapping("idle"), lambda _: Idle()),
        "Nothing arrives; run until idle (`once` and `availableNow`: run again).",
    ),
    "restart": (
        Converted(
            ByKind(f"one of {', '.join(_HOW.words)}, or {{how, change, …}}", scalar=_HOW, entries=_RESTART),
            lambda how: Restart.model_validate(how if isinstance(how, Mapping) else {"how": how}),
        ),
        "Stop the query and start it again from its checkpoint.",
    ),
}
_STEP = Alternatives(
    "step",
    "action",
    {
        name: Record(f"a step with `{name}`", {name: Key(shape, what, required=True, field="action")}, description=what)
        for name, (shape, what) in _ACTIONS.items()
    },
    common={
        "name": Key(Text("a step name"), "A description of the step; `differs` may refer to it."),
        "expect": Key(
            EXPECTATION,
            "What the step must produce. Without `rows`, no rows are expected; other absent keys are not checked.",
        ),
    },
)
STEPS = Converted(
    ListOf(Definition("step", lambda: _STEP), "a list of steps", at_least=1),
    lambda steps: tuple({"number": number, **step} for number, step in enumerate(steps, 1)),
)
