"""What Spark refuses, as data: how each refusal is worded, where it comes, and on which versions.

Whether a query is one that is refused is decided in ``checks``, ``frame`` and the operators, where the refusal is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["analysis", "start", "run"]


class Refused(Exception):
    """Spark answers with an error.

    Attributes:
        name: of the refusal, a key of ``REFUSALS``.
        stage: building the frame, starting the query, or running it.
        classes: error classes and simple names of exceptions it shows.
        message: its text, or the part of it that is known.
    """

    def __init__(self, name: str, stage: Stage, classes: tuple[str, ...], message: str) -> None:
        super().__init__(f"{' < '.join(classes)} at {stage}: {message}")
        self.name = name
        self.stage = stage
        self.classes = classes
        self.message = message


@dataclass(frozen=True)
class Wording:
    """How a refusal is worded on a range of versions."""

    stage: Stage
    classes: tuple[str, ...]
    text: str
    """May hold ``{what}``, what the refusal is about."""
    since: str | None = None
    until: str | None = None
    """The first version that no longer says so."""
    patches: tuple[tuple[str | None, str | None], ...] = ()
    """Further ranges in which it holds: a fix that reached several lines."""

    def ranges(self) -> tuple[tuple[str | None, str | None], ...]:
        return ((self.since, self.until), *self.patches)

    def error(self, name: str, what: str = "") -> Refused:
        return Refused(name, self.stage, self.classes, self.text.replace("{what}", what))


@dataclass(frozen=True)
class Refusal:
    """Something that is refused, with its wordings; where no wording holds on a version, it is not refused there."""

    name: str
    source: str
    wordings: tuple[Wording, ...]


ANALYSIS = ("AnalysisException",)
MODE = ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "AnalysisException")
ILLEGAL = ("IllegalArgumentException",)
RUN = ("StreamingQueryException",)
NO_EVENT_TIME = ("EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE", "AnalysisException")
CORRECTNESS = "Detected pattern of possible 'correctness' issue due to global watermark."


def _since_error_classes(old: str, new: str, since: str | None = None) -> tuple[Wording, Wording]:
    """A check of output modes, worded anew with the error classes of 4.0 (SPARK-48882)."""
    return Wording("start", ANALYSIS, old, since=since, until="4.0"), Wording("start", MODE, new, since="4.0")


REFUSALS = (
    # Defining a watermark.
    Refusal("unknown column", "SPARK-18124", (Wording("analysis", ANALYSIS, "cannot resolve column {what}"),)),
    Refusal(
        "event time of a wrong type",
        "SPARK-43823",
        (
            Wording(
                "analysis",
                ANALYSIS,
                "Event time must be defined on a window or a timestamp, but {what}",
                until="3.5",
            ),
            Wording("analysis", NO_EVENT_TIME, "The event time {what}", since="3.5"),
        ),
    ),
    Refusal(
        "nested event time",
        "SPARK-55492",
        (
            Wording("analysis", ("TreeNodeException",), "Failed to copy node.", until="3.2"),
            Wording("analysis", ("IllegalStateException",), "Failed to copy node.", since="3.2", until="4.0"),
            Wording("analysis", ("INTERNAL_ERROR", "SparkException"), "Failed to copy node.", since="4.0", until="4.2"),
            Wording(
                "analysis",
                ("EVENT_TIME_MUST_BE_TOP_LEVEL_COLUMN", "AnalysisException"),
                "The event time {what} must be a top-level column.",
                since="4.2",
            ),
        ),
    ),
    Refusal(
        "delay that is no interval",
        "SPARK-35815",
        (Wording("analysis", ("CANNOT_PARSE_INTERVAL", *ANALYSIS), "Unable to parse time delay '{what}'"),),
    ),
    Refusal(
        "delay without a unit",
        "SPARK-32785",
        (
            Wording("analysis", ("NullPointerException",), "", until="3.0.2"),
            Wording(
                "analysis", ("CANNOT_PARSE_INTERVAL", *ANALYSIS), "Unable to parse time delay '{what}'", since="3.0.2"
            ),
        ),
    ),
    Refusal(
        "negative delay",
        "SPARK-18124",
        (Wording("analysis", ILLEGAL, "delay threshold ({what}) should not be negative."),),
    ),
    Refusal(
        "second watermark",
        "SPARK-42376",
        (Wording("run", ANALYSIS, "Redefining watermark is disallowed.", since="3.5"),),
    ),
    Refusal(
        "two event times",
        "SPARK-42376",
        (Wording("run", ANALYSIS, "More than one event time columns are available. {what}", since="3.5"),),
    ),
    Refusal(
        "unnamed expression in WATERMARK",
        "SPARK-53687",
        (
            Wording("analysis", ("ParseException",), "Syntax error at or near 'WATERMARK'", until="4.1"),
            Wording(
                "analysis",
                ("REQUIRES_EXPLICIT_NAME_IN_WATERMARK_CLAUSE", *ANALYSIS),
                "The watermark clause requires an explicit name for {what}.",
                since="4.1",
            ),
        ),
    ),
    # What a version does not have.
    Refusal(
        "not there",
        "the version that brought it",
        (Wording("analysis", ("AnalysisException", "ParseException", "AttributeError"), "{what} does not exist"),),
    ),
    Refusal(
        "no such trigger",
        "SPARK-36533",
        (Wording("start", ("TypeError",), "unexpected keyword argument 'availableNow'"),),
    ),
    # Output modes.
    Refusal(
        "append without watermark",
        "SPARK-18124",
        _since_error_classes(
            "Append output mode not supported when there are streaming aggregations on streaming DataFrames/DataSets "
            "without watermark",
            "Invalid streaming output mode: append. This output mode is not supported for streaming aggregations without "
            "watermark on streaming DataFrames/DataSets.",
        ),
    ),
    Refusal(
        "complete without aggregation",
        "SPARK-18124",
        _since_error_classes(
            "Complete output mode not supported when there are no streaming aggregations on streaming "
            "DataFrames/Datasets",
            "Invalid streaming output mode: complete. This output mode is not supported for no streaming aggregations on "
            "streaming DataFrames/DataSets.",
        ),
    ),
    Refusal(
        "update of sessions",
        "SPARK-36463",
        _since_error_classes(
            "Update output mode not supported for session window on streaming DataFrames/DataSets",
            "Invalid streaming output mode: update. This output mode is not supported for session window streaming "
            "aggregations.",
        ),
    ),
    Refusal(
        "distinct unnoticed in append",
        "SPARK-32456",
        (Wording("run", ("NoSuchElementException",), "None.get", until="3.0.1"),),
    ),
    # Several stateful operators.
    Refusal(
        "several aggregations",
        "SPARK-40940",
        (
            Wording(
                "start",
                ANALYSIS,
                "Multiple streaming aggregations are not supported with streaming DataFrames/Datasets",
                until="3.4",
            ),
        ),
    ),
    Refusal(
        "deduplication after aggregation",
        "SPARK-40940",
        (
            Wording(
                "start",
                ANALYSIS,
                "dropDuplicates is not supported after aggregation on a streaming DataFrame/Dataset",
                until="3.4",
            ),
        ),
    ),
    Refusal(
        "stateful after append aggregation",
        "SPARK-33259",
        (Wording("start", ANALYSIS, CORRECTNESS, since="3.1", until="3.4"),),
    ),
    Refusal(
        "stateful after outer join",
        "SPARK-33259",
        (Wording("start", ANALYSIS, CORRECTNESS, since="3.1", until="3.4"),),
    ),
    Refusal(
        "stateful after time-interval join",
        "SPARK-40940",
        (Wording("start", ANALYSIS, CORRECTNESS, since="3.4", until="3.5"),),
    ),
    Refusal(
        "stateful after update or complete aggregation",
        "SPARK-40940",
        (Wording("start", ANALYSIS, CORRECTNESS, since="3.4"),),
    ),
    # Joins.
    Refusal(
        "join in update or complete mode",
        "SPARK-56384",
        (
            Wording(
                "start",
                ANALYSIS,
                "Join between two streaming DataFrames/Datasets is not supported in {what} output mode, only in Append "
                "output mode",
            ),
        ),
    ),
    Refusal(
        "inner join in update mode",
        "SPARK-56384",
        (
            Wording(
                "start",
                ANALYSIS,
                "Join between two streaming DataFrames/Datasets is not supported in Update output mode, only in Append "
                "output mode",
                until="4.2",
            ),
        ),
    ),
    Refusal(
        "outer join without bound",
        "SPARK-22136",
        (
            Wording(
                "start",
                ANALYSIS,
                "Stream-stream {what} join between two streaming DataFrame/Datasets is not supported without a watermark in "
                "the join keys, or a watermark on the nullable side and an appropriate range condition",
            ),
        ),
    ),
    Refusal(
        "join without equality",
        "SPARK-22136",
        (Wording("run", ANALYSIS, "Stream-stream join without equality predicate is not supported"),),
    ),
    Refusal(
        "join state format 4 under development",
        "SPARK-55144",
        (Wording("run", ILLEGAL, "State format version 4 is under development", since="4.2", until="4.3"),),
    ),
    # Deduplication and sessions.
    Refusal(
        "dropDuplicatesWithinWatermark without watermark",
        "SPARK-42931",
        (
            Wording(
                "start",
                ANALYSIS,
                "dropDuplicatesWithinWatermark is not supported on streaming DataFrames/DataSets without watermark",
            ),
        ),
    ),
    Refusal(
        "dropDuplicatesWithinWatermark without its event time",
        "SPARK-50492",
        (Wording("run", ("NoSuchElementException",), "key not found", since="3.5", until="3.5.4"),),
    ),
    Refusal(
        "deduplication state of another schema",
        "SPARK-39650",
        (
            Wording(
                "run",
                ("StateSchemaNotCompatible", "SparkException"),
                "Provided schema doesn't match to the schema for existing state!",
            ),
        ),
    ),
    Refusal(
        "session without another key",
        "SPARK-34893",
        (
            Wording(
                "run", (*ANALYSIS, *RUN), "Global aggregation with session window in streaming query is not supported."
            ),
        ),
    ),
    # Confs.
    Refusal(
        "unknown policy",
        "SPARK-24730",
        (
            Wording(
                "start",
                ILLEGAL,
                "The value of spark.sql.streaming.multipleWatermarkPolicy is {what}. Valid values are 'min' and 'max'",
            ),
        ),
    ),
)
"""Everything the model knows to be refused."""
