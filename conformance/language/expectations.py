"""Expectations: what a step must show."""

from __future__ import annotations

from conformance.core.case import BatchKind, ErrorStage, Expectation, ExpectationChange
from conformance.language.nested import ByKind, Key, ListOf, MapOf, Named, Record, one_or_many
from conformance.language.rows import ROWS
from conformance.language.shape import Anything, Choice, Count, Instant, Json, Nullable, Text, regular_expression
from conformance.language.words import words

_BATCH = Record(
    "a batch",
    {
        "kind": Key(Choice("kind of batch", words(BatchKind)), "`data` where some source's offset moved, rows or not."),
        "rows": Key(ROWS, "The rows it emitted, in any order."),
        "watermark": Key(Instant(nullable=True), "The watermark it ran with."),
        "dropped": Key(Count(nullable=True), "Rows it dropped as late, all operators together; null: no such metric."),
    },
    meaning="One micro-batch; absent keys are not checked.",
)
_CLASS = Text("the class of an error")
ERROR = Record(
    "error",
    {
        "class": Key(
            one_or_many(_CLASS, "the class of an error, or a list of them"),
            "A Spark error class or simple type name, or a list: one of them is that of the error or of a cause.",
        ),
        "message": Key(regular_expression(), "A regular expression that is found in the error's text."),
        "stage": Key(Choice("stage", words(ErrorStage)), "Where it is raised: building the frame, starting, or after."),
    },
    at_least=1,
    meaning="The error that is expected; the case ends there.",
)
_EVENT_TIME = Record(
    "eventTime",
    {
        name: Key(Instant(), f"The {meaning} event time.")
        for name, meaning in (("min", "lowest"), ("max", "highest"), ("avg", "mean"))
    },
    at_least=1,
    meaning="Event times of the last data batch, cut to milliseconds.",
)
_KEYS = {
    "rows": Key(
        ROWS,
        "Rows the step's micro-batches emitted together, in any order (complete mode: the last batch). Absent: no rows.",
    ),
    "batches": Key(
        ListOf(Named("batch", lambda: _BATCH), "a list of batches"), "One entry per micro-batch of the step, in order."
    ),
    "watermark": Key(Instant(), "The watermark after the step: what the next batch would run with."),
    "dropped": Key(
        Count(nullable=True), "Rows dropped as late in the step, all operators; null: there is no such metric."
    ),
    "state": Key(
        ByKind(
            "a count, or a list of counts per operator",
            scalar=Count(),
            items=ListOf(Count(), "a list of counts per operator", at_least=1),
        ),
        "Rows held after the step: a number, or a list in the order of `stateOperators`, the last operator first.",
    ),
    "eventTime": Key(_EVENT_TIME, _EVENT_TIME.meaning),
    "progress": Key(
        MapOf(
            Text("a dotted path into the progress, like durationMs.addBatch", r"^[^.\s]+(\.[^.\s]+)*$"),
            Anything(),
            "a mapping from dotted path to value",
            at_least=1,
        ),
        "Dotted path into the progress of the last executed batch → value.",
    ),
    "plan": Key(
        ListOf(regular_expression(), "a list of regular expressions", at_least=1),
        "Regular expressions found in the extended plan of the last executed batch (after `start` alone: the logical plan).",
    ),
    "error": Key(ERROR, ERROR.meaning),
}
_EXPECTATION = Record(
    "expect",
    _KEYS,
    meaning="What the step must show. Absent keys are not checked, but no `rows` means that none come out.",
)

EXPECTATION = Named("expectation", lambda: _EXPECTATION)

TAKEN_OUT = tuple(key for key in _KEYS if key != "error")
"""What `unchecked` may name: an error that nothing expects fails the case, checked or not."""

_CHANGE = Record(
    "expectation change",
    {
        **_KEYS,
        "error": Key(Nullable(ERROR), f"{ERROR.meaning} null: none, where the step expects one."),
        "unchecked": Key(
            ListOf(Choice("key", TAKEN_OUT), "a list of keys", at_least=1),
            "Keys of the step's expectation that these versions do not check.",
        ),
    },
    at_least=1,
    meaning="What replaces the step's expectation: only the keys given.",
)


CHANGE = Named("expectationChange", lambda: _CHANGE)


def expectation(written: dict[str, Json]) -> Expectation:
    """The expectation that a valid mapping describes; ``model_fields_set`` has the keys that are written."""
    return Expectation.model_validate(_in_the_models_shape(written))


def expectation_change(written: dict[str, Json]) -> ExpectationChange:
    """As ``expectation``, for what a ``differs`` entry replaces."""
    return ExpectationChange.model_validate(_in_the_models_shape(written))


def expected_error(written: dict[str, Json]) -> dict[str, Json]:
    named = written.get("class", [])
    return {**written, "class": [named] if isinstance(named, str) else named}


def _in_the_models_shape(written: dict[str, Json]) -> dict[str, Json]:
    error = written.get("error")
    return {**written, "error": expected_error(error)} if isinstance(error, dict) else written
