"""Steps: one action each and what it must produce; which sequences cannot happen or would check nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from conformance.core import case as case_values
from conformance.core.observation import GENERIC
from conformance.core.operations import OutputMode
from conformance.language import shape as shapes
from conformance.language import source as nodes
from conformance.language.pipelines import PIPELINE, settings_of
from conformance.language.shape import ByKind, Choice, Converted, Definition, Key, ListOf, MapOf, Record, Text
from conformance.language.source import Entries, Node, ProblemReport, Scalar, child, entries_of, items_of, text_of
from conformance.language.streams import ARRIVAL, ARRIVING, MOST_PARTITIONS, NAME, OF_FILES, ROWS, Ddl

_PER_OPERATOR = ListOf(shapes.count(), "a list of counts per operator", at_least=1)
_STATE = ByKind("a count, or a list of counts per operator", scalar=shapes.count(), items=_PER_OPERATOR)
_DROPPED = ByKind(
    "a count, a list of counts per operator, or null", scalar=shapes.count(nullable=True), items=_PER_OPERATOR
)
_IN_ORDER = "a number for all operators together, or a list in the order of `stateOperators`, the last operator first"

_BATCH = Record(
    "a batch",
    {
        "kind": Key(
            Choice("kind of batch", get_args(case_values.BatchKind)),
            "`data` if the offset of some source moved, even without rows.",
        ),
        "rows": Key(ROWS, "The rows it emitted, in any order."),
        "watermark": Key(shapes.Instant(nullable=True), "The watermark it ran with."),
        "dropped": Key(_DROPPED, f"Late rows it dropped: {_IN_ORDER}; null if the version has no such metric."),
        "state": Key(_STATE, f"State rows after it: {_IN_ORDER}."),
    },
    description="One micro-batch; absent keys are not checked.",
)


def _error(stages: tuple[str, ...], when: str, description: str) -> Record:
    return Record(
        "`error`",
        {
            "class": Key(
                shapes.one_or_many(Text("an error class"), "an error class, or a list of them"),
                "A Spark error class or simple type name, or a list; matches if the error or one of its causes has one of them.",
            ),
            "message": Key(shapes.REGULAR_EXPRESSION, "A regular expression found in the text of the error."),
            "stage": Key(Choice("stage", stages), f"When it is raised: while the DataFrame is built, {when}."),
        },
        at_least=1,
        description=description,
    )


ERROR = _error(
    get_args(case_values.ErrorStage),
    "at the start, while the query runs, or while its sink is read",
    "The expected error; the case ends with it.",
)
REFUSAL = _error(
    ("analysis", "start"), "or at the start", "The error of a version that lacks a feature, before the query runs."
)
_EVENT_TIME = Record(
    "`eventTime`",
    {
        name: Key(shapes.Instant(), f"The {which} event time.")
        for name, which in (("min", "lowest"), ("max", "highest"), ("avg", "mean"))
    },
    at_least=1,
    description="Event times of the last data batch, truncated to milliseconds.",
)
EXPECT_KEYS = {
    "rows": Key(
        ROWS,
        "Rows that the micro-batches of the step emitted, in any order (complete mode: those of the last batch). "
        "If absent, no rows are expected.",
    ),
    "inOrder": Key(
        shapes.constant(True),
        "Whether the rows come in the order in which they are written here, of a query that sorts.",
    ),
    "batches": Key(
        ListOf(Definition(_BATCH, "batch"), "a list of batches"),
        "One entry per micro-batch of the step, in order.",
    ),
    "watermark": Key(shapes.Instant(), "The watermark after the step, with which the next batch would run."),
    "dropped": Key(_DROPPED, f"Late rows dropped in the step: {_IN_ORDER}; null if the version has no such metric."),
    "state": Key(_STATE, f"State rows after the step: {_IN_ORDER}."),
    "eventTime": Key(_EVENT_TIME, _EVENT_TIME.description),
    "progress": Key(
        MapOf(
            Text("a dotted path into the progress, like durationMs.addBatch", r"^[^.\s]+(\.[^.\s]+)*$"),
            shapes.AnyValue(),
            "a mapping from dotted path to value",
            at_least=1,
        ),
        "Dotted path into the progress of the last executed batch → value.",
    ),
    "plan": Key(
        ListOf(shapes.REGULAR_EXPRESSION, "a list of regular expressions", at_least=1),
        "Regular expressions found in the extended plan of the last executed batch (after `start` alone: the logical plan).",
    ),
    "error": Key(ERROR, ERROR.description),
}
EXPECTATION = Definition(
    Record(
        "`expect`",
        EXPECT_KEYS,
        description="What the step must produce. Absent keys are not checked, except `rows`: without it, no rows are expected.",
    ),
    "expectation",
)

_UNCHECKABLE = tuple(key for key in EXPECT_KEYS if key != "error")
"""Keys that `unchecked` may name: an unexpected error always fails the case."""

CHANGE = Definition(
    Record(
        "a change of an expectation",
        {
            **EXPECT_KEYS,
            "error": Key(shapes.Nullable(ERROR), f"{ERROR.description} null: no error, although the step expects one."),
            "unchecked": Key(
                ListOf(Choice("key", _UNCHECKABLE), "a list of keys", at_least=1),
                "Keys of the step's expectation that are not checked on these versions.",
            ),
        },
        at_least=1,
        description="Replaces the given keys of the step's expectation.",
    ),
    "expectationChange",
)

_NAME_OF_CONF = Text("the name of a Spark conf: spark.…", r"^spark\.[A-Za-z0-9_.-]+$")
CONF = Definition(MapOf(_NAME_OF_CONF, shapes.CONF_VALUE, "a mapping from Spark conf to value"), "conf")
OUTPUT_MODE = Choice("output mode", get_args(OutputMode))
PROCESSING_TIME = "processingTime"
TRIGGER = Choice("trigger", tuple(name for name in get_args(case_values.Trigger) if name != PROCESSING_TIME))
_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_DURATION = Converted(
    Text("a duration such as '10 seconds'", rf"^[1-9][0-9]* ({'|'.join(_MS)})s?$"),
    lambda text: int(text.split()[0]) * _MS[text.split()[1].rstrip("s")],
)
FIRST_TRIGGER = ByKind(
    f"one of {', '.join(TRIGGER.words)}, or {{{PROCESSING_TIME}: 10 seconds}}",
    scalar=TRIGGER,
    entries=Record(
        "`trigger`",
        {PROCESSING_TIME: Key(_DURATION, "How often, by a clock that only `advance` moves.", True, "interval_ms")},
    ),
)

_HOW = Choice("way to restart", get_args(case_values.HowRestarted))
_CHANGE = Record(
    "`change`",
    {
        "conf": Key(CONF, "Spark SQL confs set before the query starts again."),
        "outputMode": Key(OUTPUT_MODE, "Another output mode."),
        "trigger": Key(TRIGGER, "Another trigger."),
        "query": Key(PIPELINE, "Another query on the same checkpoint."),
        "partitions": Key(
            MapOf(NAME, shapes.integer(2, MOST_PARTITIONS), "a mapping from stream to the partitions of its topic", 1),
            "Stream with `source: kafka` → how many partitions its topic has from here on; more than before.",
        ),
    },
    at_least=1,
    description="What changes at the restart.",
)
_ALTERED = MapOf(NAME, Ddl(), "a mapping from stream to the columns of its table that are new or get another type", 1)
_PART = Choice("part of a checkpoint", get_args(case_values.CheckpointPart))
_DAMAGE = Record(
    "`damage`",
    {
        how: Key(
            _PART,
            f"The part to {what}: the newest entry of a log, the newest version of each state store or its newest snapshot, "
            "the metadata file, the state folder, or the log of `sink: files`.",
        )
        for how, what in zip(
            get_args(case_values.Damage), ("remove", "empty", "truncate to half its length"), strict=True
        )
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
            Choice("point", get_args(case_values.KillPoint)),
            "When `kill` kills the engine: `rest` (between micro-batches), or in a micro-batch of the rows of `add`: "
            "`planned` (its offsets are logged), `running` (one of its partitions has run), `emitted` (its rows are out) "
            "or `committed` (and the next one is not planned).",
        ),
        "add": Key(ARRIVAL, "Rows that arrive in one micro-batch before the engine is killed."),
        "batch": Key(
            shapes.integer(1), "The micro-batch of the step, from 1, in which the engine is killed; 1 if absent."
        ),
        "damage": Key(_DAMAGE, _DAMAGE.description),
        "repartition": Key(
            shapes.integer(1),
            "Into how many partitions Spark divides the state before the query starts again (4.2+, an experimental API).",
        ),
        "agedOut": Key(
            shapes.constant(True),
            "Whether topics lose all their records, and tables their rows and versions, before the query starts again.",
        ),
        "rewritten": Key(
            shapes.constant(True),
            "Whether all rows of Delta tables are written again, in a commit that changes rows, before the query starts again.",
        ),
        "recreated": Key(
            ARRIVAL, "Stream → rows with which its source, which is deleted, is made again before the start."
        ),
        "alter": Key(
            _ALTERED, "Stream → columns that its table gets before the query starts again, or gets with another type."
        ),
        "checkpoint": Key(
            Choice("place of the checkpoint", get_args(case_values.CheckpointPlace)),
            "In which other folder the query starts again: its checkpoint is `moved` or `copied` there, or it is empty "
            "(`new`), and an `initialState` can read the state of the old one as the view `state`.",
        ),
    },
)


def _aligned(entries: Sequence[Mapping[str, Any]]) -> case_values.Backlog:
    """Give a stream that an entry does not name a batch without rows, so that entries stay aligned."""
    streams = list(dict.fromkeys(stream for entry in entries for stream in entry))
    nothing = ARRIVING.value([])
    return case_values.Backlog(
        entries=tuple({stream: entry.get(stream, nothing) for stream in streams} for entry in entries)
    )


_ENTRY = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}')
_ACTIONS = {
    "start": (
        Converted(shapes.EmptyMapping("start"), lambda _: case_values.Start()),
        "Start the query. Implicit before the first other step; write it to expect an error or a plan.",
    ),
    "add": (
        Converted(ARRIVAL, lambda arrival: case_values.Add(streams=arrival)),
        "Rows that arrive in one micro-batch, on any number of streams; then the engine runs until idle. "
        "A stream that is not named has nothing new; one named with [] has a batch without rows.",
    ),
    "backlog": (
        Converted(ListOf(_ENTRY, "a list of entries, each a mapping from stream to rows", at_least=1), _aligned),
        "One micro-batch per entry with no idle gap between them; then the engine runs until idle.",
    ),
    "idle": (
        Converted(shapes.EmptyMapping("idle"), lambda _: case_values.Idle()),
        "Nothing arrives; run until idle (`once` and `availableNow`: run again).",
    ),
    "advance": (
        Converted(_DURATION, lambda ms: case_values.Advance(ms=ms)),
        f"The clock of a query with `trigger: {{{PROCESSING_TIME}: …}}` goes on; then the micro-batch that is due runs.",
    ),
    "alter": (
        Converted(_ALTERED, lambda columns: case_values.Alter(columns=columns)),
        "The table of a stream gets these columns, or columns that it has get these types; then the engine runs until idle.",
    ),
    "restart": (
        Converted(
            ByKind(f"one of {', '.join(_HOW.words)}, or {{how, change, …}}", scalar=_HOW, entries=_RESTART),
            lambda how: case_values.Restart.model_validate(how if isinstance(how, Mapping) else {"how": how}),
        ),
        "Stop the query and start it again from its checkpoint.",
    ),
}
_STEP = shapes.Alternatives(
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
    ListOf(Definition(_STEP, "step"), "a list of steps", at_least=1),
    lambda steps: tuple({"number": number, **step} for number, step in enumerate(steps, 1)),
)


def check_steps(case: Node, report: ProblemReport) -> None:
    steps = items_of(case, "steps")
    _check_something_to_replay(steps, report)
    numbers: dict[str, int] = {}
    trigger = text_of(case, "trigger")
    for number, step in enumerate(steps, 1):
        node = child(step, "name")
        name = text_of(node)
        if node is not None and name is not None and numbers.setdefault(name, number) != number:
            report.add(node, f"duplicate step name {name!r}, first used for step {numbers[name]}")
        if number > 1:
            report.forbid(step, "start", f"`start` must be the first step, but is step {number}")
        _check_kill(child(step, "restart"), report)
        backlog = child(step, "backlog")
        nameless = not any(any(entries_of(entry)) for entry in items_of(backlog))
        if backlog is not None and items_of(backlog) and nameless and report.is_valid(backlog):
            report.add(backlog, "no entry of `backlog` names a stream; write `idle: {}` if nothing arrives")
        trigger = text_of(step, "restart", "change", "trigger") or trigger
        if trigger == "once":
            message = "`backlog` does not work with trigger `once`, which ignores rate limits: use one `add` per entry"
            report.forbid(step, "backlog", message)
    _check_ends_at_an_error(case, steps, report)
    _check_kinds_of_batches(case, steps, report)
    expectations = [child(step, "expect") for step in steps]
    for entry in items_of(case, "differs"):
        expectations += [child(entry, "expect"), *(change.value for change in entries_of(entry, "steps"))]
    sorts = "complete" in map(text_of, settings_of(case, "outputMode"))
    for expect in expectations:
        if not sorts:
            message = "`inOrder` requires `outputMode: complete`: Spark sorts the rows of no other"
            report.forbid(expect, "inOrder", message)
        for key in (entry.key for entry in entries_of(expect)) if isinstance(child(expect, "error"), Entries) else ():
            if key.value != "error":
                report.add(key, f"remove `{key.value}`: with an expected `error`, nothing else is checked")


def step_numbers(steps: tuple[Node, ...]) -> Callable[[object], int | None]:
    """Return a function from the number or name of a step to its number, or None if there is no such step."""
    names = [text_of(step, "name") for step in steps]
    numbers: dict[object, int] = {name: number for number, name in reversed([*enumerate(names, 1)]) if name is not None}
    numbers |= {number: number for number in range(1, len(steps) + 1)}
    return lambda reference: numbers.get(reference) if type(reference) in (int, str) else None


def is_driven(case: Node) -> bool:
    """Return whether the steps of a case move the clock of its query."""
    return isinstance(child(case, "trigger"), Entries)


def triggers_of(case: Node) -> set[str | None]:
    """Return the triggers with which the query of a case, and those of later restarts, start; None where none is given."""
    return {text_of(case, "trigger"), *map(text_of, settings_of(case, "trigger"))}


def _check_something_to_replay(steps: tuple[Node, ...], report: ProblemReport) -> None:
    for step in steps:
        restart = child(step, "restart")
        if any(rows is not None for rows in (child(step, "add"), child(step, "backlog"), child(restart, "add"))):
            return
        how = child(restart, "how") if isinstance(restart, Entries) else restart
        if how is not None and text_of(how) == "crash-before-commit":
            report.add(how, "crash-before-commit replays the last batch, but no batch has run before this step")
            return


def _check_kill(restart: Node | None, report: ProblemReport) -> None:
    """Report `at`, `add` and `batch` without `kill`, and a kill within a micro-batch without rows."""
    if not isinstance(restart, Entries):
        return
    if text_of(restart.get("how")) != "kill":
        for key in ("at", "add", "batch"):
            report.forbid(restart, key, f"`{key}` requires `how: kill`")
    elif text_of(restart.get("at")) in (None, "rest"):
        for key in ("add", "batch"):
            message = f"`{key}` requires `at`, which says when in the micro-batch to kill the engine"
            report.forbid(restart, key, message)
    elif restart.get("add") is None:
        report.forbid(restart, "at", "`at` requires `add`: without rows there is no micro-batch to kill the engine in")
    for entry in entries_of(restart.get("damage")):
        if text_of(entry.value) == "state" and entry.key.value != "gone":
            report.add(entry.value, "`state` is a folder and can only be `gone`")


def _check_ends_at_an_error(case: Node, steps: tuple[Node, ...], report: ProblemReport) -> None:
    """Report steps after an expected error that ``differs`` removes for no version."""
    number = next((number for number, step in enumerate(steps, 1) if child(step, "expect", "error")), len(steps))
    numbered = step_numbers(steps)
    changes = (change for entry in items_of(case, "differs") for change in entries_of(entry, "steps"))
    errors = (child(change.value, "error") for change in changes if numbered(change.key.value) == number)
    removed = any(isinstance(error, Scalar) and error.value is None for error in errors)
    if number < len(steps) and not removed:
        message = f"step {number + 1} never runs: on every version, the case ends at the error of step {number}"
        report.add(steps[number], message)


def _check_kinds_of_batches(case: Node, steps: tuple[Node, ...], report: ProblemReport) -> None:
    """Report other batches, if all have a kind, than one with data for `add`, one per entry for `backlog` and none for `idle`.

    Not with `once` and `availableNow`, where the step after a restart also runs the replay, nor with `maxOffsetsPerTrigger` or keys of
    files, which cut what arrives."""
    cuts = ("maxOffsetsPerTrigger", *OF_FILES)
    if any(child(stream.value, key) for stream in entries_of(case, "streams") for key in cuts):
        return
    if not triggers_of(case) <= {None, "default"} or is_driven(case):
        return
    for step in steps:
        batches, backlog = child(step, "expect", "batches"), child(step, "backlog")
        if child(step, "add") is not None:
            number, why = 1, "the rows of `add` arrive in one batch"
        elif isinstance(backlog, nodes.Items):
            number, why = len(backlog.items), "one per entry of `backlog`"
        elif child(step, "idle") is not None:
            number, why = 0, "nothing arrives in `idle`"
        else:
            continue
        kinds = [text_of(batch, "kind") for batch in items_of(batches)]
        if batches is not None and report.is_valid(batches) and None not in kinds and kinds.count("data") != number:
            report.add(batches, f"data batches listed: {kinds.count('data')}, expected {number}: {why}")


def check_errors(case: Node, report: ProblemReport) -> None:
    """Report expected errors that name no class of one kind of error, and no part of its message."""
    for entry in items_of(case, "differs"):
        if child(entry, "unsupported") is not None and child(entry, "error") is None:
            missing = "a suite names the error by which these versions show that they lack it"
            report.add(entry, f"`error` is missing: {missing}")
    for error in _errors(case):
        if child(error, "message") is not None or not report.is_valid(error):
            continue
        classes = nodes.each_of(error, "class")
        general = [name.value for name in classes if isinstance(name, Scalar) and name.value in GENERIC]
        if general or not classes:
            what = f"{', '.join(map(str, general))} alone" if general else "an error without `class` and `message`"
            report.add(error, f"{what} matches unrelated errors: add `message`, a part of the text of this one")


def _errors(case: Node) -> list[Entries]:
    """Return every mapping that describes an expected error; ``error: null`` expects none."""
    errors = [child(step, "expect", "error") for step in items_of(case, "steps")]
    differs, upgrades = items_of(case, "differs"), items_of(case, "upgrades")
    for entry in differs:
        errors += [child(entry, "error"), child(entry, "expect", "error")]
    errors += [child(entry, "refused") for entry in upgrades]
    for entry in (*differs, *upgrades):
        errors += [child(change.value, "error") for change in entries_of(entry, "steps")]
    return [error for error in errors if isinstance(error, Entries)]
