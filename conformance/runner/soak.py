"""A soak from its beginning to the verdict on every law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

from conformance.core.versions import SparkVersion
from conformance.invariants.catalogue import INVARIANTS, Invariant
from conformance.invariants.verdict import STREAM_TOTALS, InvariantVerdict, StreamTotals, judge
from conformance.model.catalogue import rules_of
from conformance.model.query import ALLOW_MULTIPLE
from harness.engine.protocol import Rows
from harness.soak.engine import SoakEngine
from harness.soak.messages import Ask, InvariantQuery, Late, Stream
from harness.soak.soak import Soak, SoakRun, Watcher

MOST_ROWS = 5
"""Of those that break a law, so many are shown."""

_MOST_BATCHES, _FEWEST_BATCHES, _ROWS_A_BATCH = 100, 12, 10_000

NEEDED: Mapping[str, str] = {
    # Every entry of the logs is wanted afterwards, and every progress.
    "spark.sql.streaming.minBatchesToRetain": "1000000",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}
"""Spark settings that a soak cannot do without."""


@dataclass(frozen=True)
class SoakVerdict:
    """What came of a soak."""

    soaked: SoakRun
    books: StreamTotals
    laws: tuple[InvariantVerdict, ...]


def stream(rows: int, seed: int, files: int) -> Stream:
    """A stream of so many rows.

    Args:
        rows: all of them, 100 at least.
        seed: what all that is random in it follows from.
        files: files of a micro-batch, and partitions of its state.
    """
    batches = max(_FEWEST_BATCHES, min(_MOST_BATCHES, rows // _ROWS_A_BATCH))
    return Stream(rows=rows, seed=seed, batches=batches, files=files)


def settings(of: Stream, conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a soak; ``conf``: what somebody wishes, which counts most."""
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
        start: brings up an engine.
        folder: where its files lie.
        of: the stream.
        kills: how many engines are to be killed.
        late: by whose watermark rows are late: ``late_by``.
        watcher: sees it go on.

    Raises:
        SurroundingsFailed: an engine could not be started, or went wrong without having been killed.
    """
    soaked = Soak(start, folder, of, kills, watcher).run()
    watcher("checking the laws")
    engine = start()
    try:
        books, laws = ask(engine, folder, of, late)
    finally:
        engine.close()
    return SoakVerdict(soaked, books, laws)


def ask(
    engine: SoakEngine,
    folder: str,
    of: Stream,
    late: Late,
    laws: Sequence[Invariant] = INVARIANTS,
) -> tuple[StreamTotals, tuple[InvariantVerdict, ...]]:
    """Hold what a soak left behind against laws.

    Args:
        engine: answers their questions.
        folder: of the soak.
        of: its stream.
        late: by whose watermark rows are late: ``late_by``.
        laws: which ones.
    """
    questions = (
        InvariantQuery(name="books", sql=STREAM_TOTALS),
        *(InvariantQuery(name=f"{law.name}, looked", sql=law.checked_sql) for law in laws),
        *(InvariantQuery(name=law.name, sql=law.violations_sql, most=MOST_ROWS) for law in laws),
    )
    request = Ask(folder=folder, stream=of, late=late, questions=questions)
    answers = {word.name: word for word in engine.ask(request) if isinstance(word, Rows)}
    (found,) = answers["books"].rows
    verdicts = tuple(
        judge(law, answers[f"{law.name}, looked"].rows[0][0], answers[law.name].columns, answers[law.name].rows)
        for law in laws
    )
    return StreamTotals(**dict(zip([field.name for field in fields(StreamTotals)], found, strict=True))), verdicts


def late_by(version: SparkVersion, conf: Mapping[str, str]) -> Late:
    """By whose watermark a version drops late rows (SPARK-40925), which a setting turns back."""
    if conf.get(ALLOW_MULTIPLE) == "false":
        return "own batch"
    return rules_of(version).late_watermark
