"""Jobs with operators and lengths drawn by a seed, and rows that arrive in disorder, for tables of delays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from conformance.core.spark_types import parse_schema
from conformance.own_job.sample import Sample

_NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)
_MARKED = 'a.withWatermark("t", "{delay} minutes")'
_JOINED = '.join(b.withWatermark("t2", "{delay} minutes"), F.expr("who = who2 AND t2 BETWEEN t AND t + INTERVAL {length} MINUTES")'
_KINDS = {
    "tumbling": _MARKED + '.groupBy(F.window("t", "{length} minutes"), "who").agg(ROWS)',
    "sliding": _MARKED + '.groupBy(F.window("t", "{length} minutes", "{half} minutes")).agg(ROWS)',
    "offset": _MARKED + '.groupBy(F.window("t", "{length} minutes", "{length} minutes", "3 minutes")).agg(ROWS)',
    "sessions": _MARKED + '.groupBy(F.session_window("t", "{half} minutes"), "who").agg(ROWS)',
    "unique": _MARKED + '.dropDuplicates(["who", "t"])',
    "within": _MARKED + '.dropDuplicatesWithinWatermark(["who"])',
    "inner": _MARKED + _JOINED + ")",
    "outer": _MARKED + _JOINED + ', "leftOuter")',
}
GROUPING = ("tumbling", "sliding", "offset", "sessions")
"""Jobs whose results name their rows in the last column."""
HEAD = """from pyspark.sql import functions as F

ROWS = F.sort_array(F.collect_set("n"))


"""


@dataclass(frozen=True)
class DrawnJob:
    name: str
    kind: str
    code: str
    samples: tuple[Sample, ...]


def drawn_jobs(seed: int, number: int) -> list[DrawnJob]:
    draw = Random(seed)
    jobs = []
    for at in range(number):
        kind = [*_KINDS][at % len(_KINDS)]
        length = draw.choice((6, 10, 20))
        query = _KINDS[kind].format(delay=draw.choice((2, 5, 15)), length=length, half=length // 2)
        streams = ("a", "b") if kind in ("inner", "outer") else ("a",)
        code = f"def job_{at}(spark, {', '.join(streams)}):\n    return {query}\n"
        jobs.append(DrawnJob(f"job_{at}", kind, code, tuple(_sample(draw, stream) for stream in streams)))
    return jobs


def _sample(draw: Random, stream: str) -> Sample:
    """Draw rows, most a little behind the newest, some far; the last is so late that it closes all windows."""
    schema = parse_schema({"a": "t TIMESTAMP, who STRING, n INT", "b": "t2 TIMESTAMP, who2 STRING"}[stream])
    rows = []
    for number in range(20):
        behind = draw.choice((0, 0, 0, draw.randrange(600), draw.randrange(3600)))
        time = _NOON + timedelta(seconds=300 * number - behind, milliseconds=draw.choice((0, 500)))
        rows.append((f"{time:%Y-%m-%d %H:%M:%S.%f}", draw.choice(("ada", "bob", "cy")), number))
    rows.append((f"{_NOON + timedelta(days=40):%Y-%m-%d %H:%M:%S}", "zoe", len(rows)))
    return Sample(stream, schema, tuple(row[: len(schema.fields)] for row in rows), 0)
