"""Expectations: what a step must produce."""

from __future__ import annotations

from typing import get_args

from conformance.core.case import BatchKind, ErrorStage
from conformance.language.compound_shapes import ByKind, Definition, Key, ListOf, MapOf, Record, one_or_many
from conformance.language.shape import AnyValue, Choice, Count, Instant, Nullable, Text, regular_expression
from conformance.language.streams import ROWS

_PER_OPERATOR = ListOf(Count(), "a list of counts per operator", at_least=1)
_STATE = ByKind("a count, or a list of counts per operator", scalar=Count(), items=_PER_OPERATOR)
_DROPPED = ByKind("a count, a list of counts per operator, or null", scalar=Count(nullable=True), items=_PER_OPERATOR)
_IN_ORDER = "a number for all operators together, or a list in the order of `stateOperators`, the last operator first"

_BATCH = Record(
    "a batch",
    {
        "kind": Key(
            Choice("kind of batch", get_args(BatchKind)),
            "`data` if the offset of some source moved, even without rows.",
        ),
        "rows": Key(ROWS, "The rows it emitted, in any order."),
        "watermark": Key(Instant(nullable=True), "The watermark it ran with."),
        "dropped": Key(_DROPPED, f"Late rows it dropped: {_IN_ORDER}; null if the version has no such metric."),
        "state": Key(_STATE, f"State rows after it: {_IN_ORDER}."),
    },
    description="One micro-batch; absent keys are not checked.",
)
_CLASS_AND_MESSAGE = {
    "class": Key(
        one_or_many(Text("an error class"), "an error class, or a list of them"),
        "A Spark error class or simple type name, or a list; matches if the error or one of its causes has one of them.",
    ),
    "message": Key(regular_expression(), "A regular expression found in the text of the error."),
}
ERROR = Record(
    "`error`",
    {
        **_CLASS_AND_MESSAGE,
        "stage": Key(
            Choice("stage", get_args(ErrorStage)),
            "When it is raised: while the DataFrame is built, at the start, or while the query runs.",
        ),
    },
    at_least=1,
    description="The expected error; the case ends with it.",
)
REFUSAL = Record(
    "`error`",
    {
        **_CLASS_AND_MESSAGE,
        "stage": Key(
            Choice("stage", ("analysis", "start")), "When it is raised: while the DataFrame is built, or at the start."
        ),
    },
    at_least=1,
    description="The error of a version that lacks a feature, before the query runs.",
)
_EVENT_TIME = Record(
    "`eventTime`",
    {
        name: Key(Instant(), f"The {which} event time.")
        for name, which in (("min", "lowest"), ("max", "highest"), ("avg", "mean"))
    },
    at_least=1,
    description="Event times of the last data batch, truncated to milliseconds.",
)
_KEYS = {
    "rows": Key(
        ROWS,
        "Rows that the micro-batches of the step emitted, in any order (complete mode: those of the last batch). "
        "If absent, no rows are expected.",
    ),
    "batches": Key(
        ListOf(Definition("batch", lambda: _BATCH), "a list of batches"),
        "One entry per micro-batch of the step, in order.",
    ),
    "watermark": Key(Instant(), "The watermark after the step, with which the next batch would run."),
    "dropped": Key(_DROPPED, f"Late rows dropped in the step: {_IN_ORDER}; null if the version has no such metric."),
    "state": Key(_STATE, f"State rows after the step: {_IN_ORDER}."),
    "eventTime": Key(_EVENT_TIME, _EVENT_TIME.description),
    "progress": Key(
        MapOf(
            Text("a dotted path into the progress, like durationMs.addBatch", r"^[^.\s]+(\.[^.\s]+)*$"),
            AnyValue(),
            "a mapping from dotted path to value",
            at_least=1,
        ),
        "Dotted path into the progress of the last executed batch → value.",
    ),
    "plan": Key(
        ListOf(regular_expression(), "a list of regular expressions", at_least=1),
        "Regular expressions found in the extended plan of the last executed batch (after `start` alone: the logical plan).",
    ),
    "error": Key(ERROR, ERROR.description),
}
_EXPECTATION = Record(
    "`expect`",
    _KEYS,
    description="What the step must produce. Absent keys are not checked, except `rows`: without it, no rows are expected.",
)

EXPECTATION = Definition("expectation", lambda: _EXPECTATION)

_UNCHECKABLE = tuple(key for key in _KEYS if key != "error")
"""Keys that `unchecked` may name: an unexpected error always fails the case."""

_CHANGE = Record(
    "a change of an expectation",
    {
        **_KEYS,
        "error": Key(Nullable(ERROR), f"{ERROR.description} null: no error, although the step expects one."),
        "unchecked": Key(
            ListOf(Choice("key", _UNCHECKABLE), "a list of keys", at_least=1),
            "Keys of the step's expectation that are not checked on these versions.",
        ),
    },
    at_least=1,
    description="Replaces the given keys of the step's expectation.",
)

CHANGE = Definition("expectationChange", lambda: _CHANGE)
