"""Runs a soak and checks every invariant on what it left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from conformance.core.versions import SparkVersion
from conformance.invariants.catalogue import INVARIANTS, STREAM_TOTALS, Invariant, InvariantVerdict, StreamTotals, judge
from conformance.model.catalogue import rules_of
from conformance.model.settings import ALLOW_MULTIPLE
from harness.engine.protocol import Rows
from harness.soak.engine import SoakEngine
from harness.soak.messages import Ask, InvariantQuery, Late, Stream
from harness.soak.soak import Soak, SoakRun, Watcher

MAX_ROWS = 5
"""The number of rows shown for a broken invariant."""

_MAX_BATCHES, _MIN_BATCHES, _ROWS_PER_BATCH = 100, 12, 10_000

NEEDED: Mapping[str, str] = {
    # The invariants need every entry of the logs, and every progress.
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
"""Spark settings that every soak needs."""


@dataclass(frozen=True)
class SoakVerdict:
    """The result of a soak."""

    run: SoakRun
    totals: StreamTotals
    invariants: tuple[InvariantVerdict, ...]


def stream(rows: int, seed: int, files: int) -> Stream:
    """A stream for a soak.

    Args:
        rows: how many, at least 100.
        seed: of everything random in it.
        files: per micro-batch; also the number of state partitions.
    """
    batches = max(_MIN_BATCHES, min(_MAX_BATCHES, rows // _ROWS_PER_BATCH))
    return Stream(rows=rows, seed=seed, batches=batches, files=files)


def settings(of: Stream, conf: Mapping[str, str]) -> dict[str, str]:
    """The Spark settings for a soak; those of ``conf`` override the others."""
    return {**NEEDED, "spark.sql.shuffle.partitions": str(of.files), **conf}


def run_soak(
    start: Callable[[], SoakEngine],
    folder: str,
    of: Stream,
    kills: int,
    late: Late,
    watcher: Watcher,
) -> SoakVerdict:
    """Run a soak and judge it.

    Args:
        kills: how many engines to kill.
        late: which watermark decides that rows are late: ``late_by``.

    Raises:
        SurroundingsFailed: an engine could not start, or failed without having been killed.
    """
    run = Soak(start, folder, of, kills, watcher).run()
    watcher("checking the invariants")
    engine = start()
    try:
        totals, invariants = ask(engine, folder, of, late)
    finally:
        engine.close()
    return SoakVerdict(run, totals, invariants)


def ask(
    engine: SoakEngine,
    folder: str,
    of: Stream,
    late: Late,
    invariants: Sequence[Invariant] = INVARIANTS,
) -> tuple[StreamTotals, tuple[InvariantVerdict, ...]]:
    """Check invariants on what a soak left behind.

    Args:
        late: which watermark decides that rows are late: ``late_by``.
    """
    questions = (
        InvariantQuery(name="totals", sql=STREAM_TOTALS),
        *(InvariantQuery(name=f"{one.name}, looked", sql=one.checked_sql) for one in invariants),
        *(InvariantQuery(name=one.name, sql=one.violations_sql, most=MAX_ROWS) for one in invariants),
    )
    request = Ask(folder=folder, stream=of, late=late, questions=questions)
    answers = {word.name: word for word in engine.ask(request) if isinstance(word, Rows)}
    (found,) = answers["totals"].rows
    verdicts = tuple(
        judge(one, answers[f"{one.name}, looked"].rows[0][0], answers[one.name].columns, answers[one.name].rows)
        for one in invariants
    )
    return StreamTotals(**dict(zip([field.name for field in fields(StreamTotals)], found, strict=True))), verdicts


def late_by(version: SparkVersion, conf: Mapping[str, str]) -> Late:
    """Which watermark decides that rows are late (SPARK-40925): it depends on the version, and a setting restores the old one."""
    if conf.get(ALLOW_MULTIPLE) == "false":
        return "own batch"
    return rules_of(version).late_watermark
