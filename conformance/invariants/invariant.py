"""What a law is, and the tables it asks.

Every instant is in ms since the epoch; a window is known by its end.

=============== ======================================= =====================================================================
table           columns                                 holds
=============== ======================================= =====================================================================
arrived         file, window_end, sensor, total, newest the input: of each file, rows and newest event time by window and key
read_files      batch, file                             which micro-batch read which file, by source log and offset log
micro_batches   batch, watermark, late_watermark,       each micro-batch of the offset log: the watermark it ran with, the one
                next_watermark                          its rows were late by, and the one its commit left (null: none)
batch_rows      batch, window_end, sensor, total,       the input by micro-batch
                newest
accepted        as ``batch_rows``                       what of it was not late
attempts        batch, attempt                          each attempt at a micro-batch whose output is complete
attempted       batch, attempt, window_end, sensor,     what each of them emitted
                total
emitted         batch, window_end, sensor, total        what the last attempt at each micro-batch emitted: a sink that knows ids
told            batch, attempt, watermark, state,       the engine's progress: keys in the state, groups dropped (null: the
                dropped                                 version does not tell)
query           delay                                   one row: the watermark's delay
=============== ======================================= =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

GUIDE = "https://spark.apache.org/docs/latest/streaming/apis-on-dataframes-and-datasets.html"
"""Spark's programming guide, where most laws are written."""


@dataclass(frozen=True)
class Invariant:
    """One law."""

    name: str
    sentence: str
    """What holds."""
    broken: str
    """The question, in SQL that any engine understands: its rows are where the law does not hold."""
    looked: str
    """A question that counts what the law was held against, in one row and column. Where it is 0 the law says nothing of a run."""
    what: str
    """What is counted, in the plural."""
    source: str
    """Where Spark promises it: a link or an issue."""
