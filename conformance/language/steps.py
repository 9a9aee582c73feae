"""Steps: exactly one action each, then an optional name and expectation."""

from __future__ import annotations

from conformance.core.case import (
    Action,
    Add,
    Backlog,
    Change,
    CheckpointPart,
    Damage,
    HowRestarted,
    Idle,
    KillPoint,
    OutputMode,
    Restart,
    Start,
    Step,
    Trigger,
)
from conformance.language.expectations import EXPECTATION, expectation
from conformance.language.nested import ByKind, Key, ListOf, MapOf, Named, Record, Variants, nothing_in
from conformance.language.pipelines import PIPELINE, pipeline
from conformance.language.rows import ARRIVAL, ARRIVING, partitioned
from conformance.language.shape import Choice, Json, Setting, Text, Whole
from conformance.language.streams import NAME
from conformance.language.words import words

_CONF = MapOf(
    Text("the name of a Spark conf: spark.…", r"^spark\.[A-Za-z0-9_.-]+$"),
    Setting(),
    "a mapping from Spark conf to value",
)
CONF = Named("conf", lambda: _CONF)
HOW = Choice("way to restart", words(HowRestarted))
OUTPUT_MODE = Choice("output mode", words(OutputMode))
TRIGGER = Choice("trigger", words(Trigger))

_CHANGE = Record(
    "change",
    {
        "conf": Key(CONF, "Spark SQL confs set before the query starts again."),
        "outputMode": Key(OUTPUT_MODE, "Another output mode."),
        "trigger": Key(TRIGGER, "Another trigger."),
        "query": Key(PIPELINE, "Another query on the same checkpoint."),
    },
    at_least=1,
    meaning="What the restart changes.",
)
_PART = Choice("part of a checkpoint", words(CheckpointPart))
_DAMAGE = Record(
    "damage",
    {
        how: Key(
            _PART, f"The part that is {meaning}: the newest of its log or state stores, the one file, or the folder."
        )
        for how, meaning in zip(
            words(Damage), ("removed", "left without a byte", "cut to half its length"), strict=True
        )
    },
    at_least=1,
    meaning="What is spoilt in the checkpoint while no engine runs.",
)
_RESTART = Record(
    "restart",
    {
        "how": Key(HOW, "how to stop and start again", required=True),
        "change": Key(_CHANGE, _CHANGE.meaning),
        "at": Key(
            Choice("point", words(KillPoint)),
            "Where `kill` kills: at `rest`, or in a micro-batch of the rows of `add`: `planned` (its offsets are logged), `running` "
            "(one partition of it has run), `emitted` (its rows are out), `committed` (and the next is not planned).",
        ),
        "add": Key(ARRIVAL, "The rows that arrive, in one micro-batch, before the engine is killed."),
        "batch": Key(
            Whole(least=1), "In which micro-batch of the step the engine is killed, from 1; the first when absent."
        ),
        "damage": Key(_DAMAGE, _DAMAGE.meaning),
    },
)
_ENTRY = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}')
_ACTIONS = {
    "start": (
        nothing_in("start"),
        "Start the query: implicit before the first other step; write it to expect an error or a plan.",
    ),
    "add": (
        ARRIVAL,
        "Rows that arrive in one micro-batch, of however many streams; then the engine runs until idle. "
        "A stream that is not named has nothing new; one named with [] has a batch of no rows.",
    ),
    "backlog": (
        ListOf(_ENTRY, "a list of entries, each a mapping from stream to rows", at_least=1),
        "One micro-batch per entry with no idle gap between them; then the engine runs until idle.",
    ),
    "idle": (nothing_in("idle"), "Nothing arrives; run until idle (`once` and `availableNow`: run again)."),
    "restart": (
        ByKind(f"one of {', '.join(HOW.words)}, or {{how, change, …}}", scalar=HOW, entries=_RESTART),
        "Stop the query one way or another and start it again from its checkpoint.",
    ),
}
_STEP = Variants(
    "step",
    "action",
    {
        name: Record(f"a step with {name}", {name: Key(shape, meaning, required=True)}, meaning=meaning)
        for name, (shape, meaning) in _ACTIONS.items()
    },
    common={
        "name": Key(Text("the name of a step"), "What happens here, in words; `differs` may refer to it."),
        "expect": Key(
            EXPECTATION,
            "What the step must show; without `rows`, none may come out. Other absent keys are not checked.",
        ),
    },
)
STEP = Named("step", lambda: _STEP)
STEPS = ListOf(STEP, "a list of steps", at_least=1)


def step(number: int, written: dict[str, Json]) -> Step:
    """The step that a valid mapping describes."""
    expect = written.get("expect")
    return Step(
        number=number,
        action=_action(written),
        name=written.get("name"),
        expect=None if expect is None else expectation(expect),
    )


def confs(written: dict[str, Json]) -> dict[str, str]:
    """As they reach Spark: every value as text."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in written.items()}


def _action(written: dict[str, Json]) -> Action:
    if "start" in written:
        return Start()
    if "add" in written:
        return Add.model_validate({"streams": _arrival(written["add"])})
    if "backlog" in written:
        return Backlog.model_validate({"entries": _aligned(written["backlog"])})
    if "idle" in written:
        return Idle()
    restart = written["restart"]
    return Restart(how=restart) if isinstance(restart, str) else _changed(restart)


def _arrival(written: dict[str, Json]) -> dict[str, Json]:
    return {stream: partitioned(arriving) for stream, arriving in written.items()}


def _aligned(entries: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """A stream that an entry does not name has a batch of no rows, so that entries stay aligned."""
    streams = list(dict.fromkeys(stream for entry in entries for stream in entry))
    return [_arrival({stream: entry.get(stream, []) for stream in streams}) for entry in entries]


def _changed(restart: dict[str, Json]) -> Restart:
    written = restart.get("change", {})
    change = Change(
        **{key: written[key] for key in ("outputMode", "trigger") if key in written},
        **({"conf": confs(written["conf"])} if "conf" in written else {}),
        **({"query": pipeline(written["query"])} if "query" in written else {}),
    )
    others = {key: restart[key] for key in ("at", "batch", "damage") if key in restart}
    return Restart.model_validate(
        {"how": restart["how"], "change": change, "add": _arrival(restart.get("add", {})), **others}
    )
