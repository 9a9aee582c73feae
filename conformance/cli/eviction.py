"""``conformance eviction``: when the state of a stream-stream join lets a row go, by the reference model."""

import typer
from rich.text import Text

from conformance.cli import options
from conformance.cli.console import print_answer
from conformance.cli.options import argument, known_version, option
from conformance.core.values import NotAValue, instant_ms
from conformance.oracle.join_state import JoinInput, join_state


def eviction(
    condition: str = argument(..., "The part of the join condition that is about the two event times.", "CONDITION"),
    left: str = option(
        ..., "Event-time column of the left side, and its delay if it has a watermark.", "COLUMN [DELAY]"
    ),
    right: str = option(..., "The same of the right side.", "COLUMN [DELAY]"),
    at: str = option("12:00", "Event time of the row.", "TIME"),
    spark: str | None = option(None, "A version (3.5.9) or a line (3.5); the newest by default.", "VERSION"),
    as_json: options.AsJson = False,
) -> None:
    """Compute when a stream-stream join evicts a row.

    For a row of each side: the watermark that evicts it, and the event times that must have been seen for the watermark to get
    there. The watermark of the query is the lowest of its inputs', and it counts from the next micro-batch on. A row without a
    match comes out of an outer join with nulls when it is evicted.
    """
    try:
        at_ms = instant_ms(at)
    except NotAValue:
        raise typer.BadParameter("write a time such as 12:00 or 2024-03-01 12:00", param_hint="--at") from None
    version = known_version(spark, "--spark")
    sides = join_state(condition, JoinInput.parse(left), JoinInput.parse(right), version, at_ms)
    # Times are in ms since the epoch.
    records = [
        {
            "side": side.side,
            "column": side.column,
            "at": side.at_ms,
            "watermark": side.watermark_ms,
            "seen": dict(side.seen_ms),
        }
        for side in sides
    ]
    record = {"spark": str(version), "condition": condition, "sides": records}
    print_answer((Text(str(side)) for side in sides), record, as_json=as_json)
