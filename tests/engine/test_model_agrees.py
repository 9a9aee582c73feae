"""Random traces through random queries of one operator, on the reference model and on a real Spark: they must not disagree.

The seed is printed; ``CONFORMANCE_SEED=17 pytest tests/engine/test_model_agrees.py`` repeats a run, and
``CONFORMANCE_TRACES`` says how many traces one tries.
"""

import json
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from conformance.case import Add, Backlog, Case, Idle, Partitioned, Restart, Step
from conformance.pipeline import Operation, Pipeline
from conformance.predict import predict
from conformance.rows import OutputSchema
from conformance.types import parse_schema
from harness.alignment import check_alignment
from harness.request import request_for

SEED = int(os.environ.get("CONFORMANCE_SEED") or random.randrange(1_000_000))
TRACES = int(os.environ.get("CONFORMANCE_TRACES") or 200)

NULLS = st.sampled_from([None, 8])
SECONDS = st.sampled_from(
    [0, 3, 5, 9.999, 10, 10.0005, 10.001, 14, 15, 19.999, 20, 20.000001, 25, 30, 30.001, 37, 40, 55, 100]
)
TIMES = st.one_of(SECONDS, SECONDS, SECONDS, SECONDS, NULLS)
IDS = st.sampled_from(["a", "b"])
DELAYS = st.sampled_from(["0 seconds", "5 seconds", "10 seconds", "15 seconds"])
ROWS = st.lists(st.tuples(TIMES, IDS, st.integers(1, 3)), min_size=0, max_size=3)


@dataclass(frozen=True)
class Query:
    """A query and what a trace for it may do."""

    streams: dict
    pipeline: list
    mode: str
    restarts: bool = True


def events(delay, *operations):
    return [{"from": "events"}, {"withWatermark": ["event_time", delay]}, *operations]


EVENTS = {"events": "event_time TIMESTAMP, id STRING, n INT"}
TWO = {
    "events": "event_time TIMESTAMP, id STRING, n INT",
    "others": "other_time TIMESTAMP, other_id STRING, m INT",
}


@st.composite
def aggregations(draw):
    key = draw(
        st.sampled_from(
            [
                "window(event_time, '10 seconds')",
                "window(event_time, '10 seconds', '5 seconds')",
                "window(event_time, '10 seconds', '10 seconds', '3 seconds')",
                "event_time",
            ]
        )
    )
    keys = [key, "id"] if draw(st.booleans()) else [key]
    aggregated = {"groupBy": keys, "agg": ["count(*) AS rows", "sum(n) AS total", "max(event_time) AS latest"]}
    mode = draw(st.sampled_from(["append", "append", "update", "update", "complete"]))
    return Query(EVENTS, events(draw(DELAYS), aggregated), mode)


@st.composite
def keyed_aggregations(draw):
    aggregated = {"groupBy": ["id"], "agg": ["count(event_time) AS times", "avg(n) AS mean"]}
    return Query(EVENTS, events(draw(DELAYS), aggregated), draw(st.sampled_from(["update", "complete"])))


@st.composite
def sessions(draw):
    gap = draw(
        st.sampled_from(["'5 seconds'", "'10 seconds'", "CASE WHEN n = 1 THEN '5 seconds' ELSE '12 seconds' END"])
    )
    aggregated = {
        "groupBy": [f"session_window(event_time, {gap})", "id"],
        "agg": ["count(*) AS rows", "sum(n) AS total"],
    }
    return Query(EVENTS, events(draw(DELAYS), aggregated), draw(st.sampled_from(["append", "append", "complete"])))


@st.composite
def deduplications(draw):
    names = draw(st.sampled_from([["id", "event_time"], ["id"], []]))
    chosen = draw(st.sampled_from([[], [{"select": ["id", "n"]}], [{"where": "n > 1"}]]))
    return Query(
        EVENTS, events(draw(DELAYS), {"dropDuplicates": names}, *chosen), draw(st.sampled_from(["append", "update"]))
    )


@st.composite
def deduplications_within_watermark(draw):
    query = events(draw(DELAYS), {"where": "event_time IS NOT NULL"}, {"dropDuplicatesWithinWatermark": ["id"]})
    return Query(EVENTS, query, "append")


@st.composite
def stateless(draw):
    operations = draw(
        st.sampled_from(
            [
                [{"where": "n > 1"}],
                [{"where": "event_time < TIMESTAMP '1970-01-01 00:00:20'"}],
                [{"select": ["id", "event_time"]}],
            ]
        )
    )
    return Query(EVENTS, events(draw(DELAYS), *operations), draw(st.sampled_from(["append", "update"])))


@st.composite
def unions(draw):
    other = [{"from": "others"}, {"withWatermark": ["other_time", draw(DELAYS)]}]
    union = {"union": other}
    aggregated = {"groupBy": ["window(event_time, '10 seconds')"], "agg": ["count(*) AS rows"]}
    operations = [union, aggregated] if draw(st.booleans()) else [union]
    return Query(TWO, events(draw(DELAYS), *operations), "append")


@st.composite
def interval_joins(draw):
    how = draw(st.sampled_from(["inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi"]))
    low, high = draw(st.sampled_from([(">=", "<="), (">", "<"), (">=", "<")]))
    bounded = f"id = other_id AND other_time {low} event_time AND other_time {high} event_time + INTERVAL 10 SECONDS"
    also = draw(st.sampled_from(["", " AND n > 1", " AND m > 1", " AND m >= n"]))
    other = [{"from": "others"}, {"withWatermark": ["other_time", draw(DELAYS)]}]
    join = {"join": other, "on": bounded + also, "how": how}
    return Query(TWO, events(draw(DELAYS), join), "append", restarts=False)


@st.composite
def window_joins(draw):
    how = draw(st.sampled_from(["inner", "leftOuter", "rightOuter", "leftSemi"]))
    chosen = {"select": ["id", "n", "window(event_time, '10 seconds') AS mine"]}
    other = [
        {"from": "others"},
        {"withWatermark": ["other_time", draw(DELAYS)]},
        {"select": ["other_id", "m", "window(other_time, '10 seconds') AS theirs"]},
    ]
    join = {"join": other, "on": "id = other_id AND mine = theirs", "how": how}
    return Query(TWO, events(draw(DELAYS), chosen, join), "append", restarts=False)


QUERIES = st.one_of(
    aggregations(),
    aggregations(),
    keyed_aggregations(),
    sessions(),
    deduplications(),
    deduplications_within_watermark(),
    stateless(),
    unions(),
    interval_joins(),
    interval_joins(),
    window_joins(),
)


@st.composite
def cases(draw):
    query = draw(QUERIES)
    streams = list(query.streams)
    arrivals = st.dictionaries(
        st.sampled_from(streams), ROWS.map(lambda rows: Partitioned(partitions=(tuple(rows),))), min_size=1
    )
    every = st.fixed_dictionaries(dict.fromkeys(streams, ROWS.map(lambda rows: Partitioned(partitions=(tuple(rows),)))))
    adding = st.builds(lambda streams: Add(streams=streams), arrivals)
    backlog = st.builds(lambda entries: Backlog(entries=tuple(entries)), st.lists(every, min_size=2, max_size=3))
    actions = [adding, adding, adding, backlog]
    chosen = [draw(st.one_of(adding, backlog))]
    if query.restarts:
        actions += [
            st.builds(lambda how: Restart(how=how), st.sampled_from(["graceful", "crash-before-commit"])),
            st.just(Idle()),
        ]
    chosen += draw(st.lists(st.one_of(*actions), min_size=1, max_size=2))
    no_data = draw(st.sampled_from(["true", "true", "true", "false"]))
    return Case(
        id="random/trace",
        path=Path("random/trace.yaml"),
        digest="0" * 64,
        lines={},
        title="A random trace",
        streams={name: parse_schema(ddl) for name, ddl in query.streams.items()},
        query=pipeline_of(query.pipeline),
        steps=tuple(Step(number=number, action=action) for number, action in enumerate(chosen, 1)),
        output_mode=query.mode,
        conf={"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.noDataMicroBatches.enabled": no_data},
    )


def pipeline_of(operations):
    def operation(arguments):
        name = next(iter(arguments))
        nested = pipeline_of(arguments[name]) if name in ("join", "union") else None
        return Operation(name, arguments, nested)

    return Pipeline(tuple(operation(arguments) for arguments in operations))


def behaviour(observation):
    """What anybody can see, in a form that compares."""
    schema = OutputSchema.of(observation.columns)
    steps = []
    for step in observation.steps:
        batches = [
            {
                "kind": batch.kind,
                "watermark": batch.watermark,
                "rows": sorted(map(repr, map(schema.comparable, batch.rows))),
                "dropped": batch.dropped,
                "state": list(batch.state),
                "event time": None if batch.event_time is None else batch.event_time.model_dump(),
                "next watermark": batch.next_watermark,
            }
            for batch in step.batches
        ]
        error = None if step.error is None else [step.error.stage, step.error.message[:300]]
        steps.append({"step": step.number, "batches": batches, "watermark": step.watermark, "error": error})
    return steps


def shown(case):
    steps = [step.action.model_dump(mode="json") for step in case.steps]
    query = {"query": case.query.wire(), "outputMode": case.output_mode, "conf": dict(case.conf)}
    return json.dumps({**query, "steps": steps}, indent=1)


def test_the_model_and_spark_do_not_disagree(engine, target, capsys):
    tried = []
    began = time.monotonic()

    @seed(SEED)
    @settings(
        max_examples=TRACES,
        deadline=None,
        database=None,
        print_blob=False,
        # A trace is short as it is; to shrink one would take the engine minutes.
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def agrees(case):
        tried.append(case)
        predicted = predict(case, target.version).observation
        request = request_for(case, engine.new_directory(case.id))
        observed = engine.observe(request, step_timeout=120)
        check_alignment(request, observed)
        assert behaviour(observed) == behaviour(predicted), f"seed {SEED}\n{shown(case)}"

    with capsys.disabled():
        print(f"\nseed {SEED}: ", end="", flush=True)
    agrees()
    with capsys.disabled():
        print(
            f"{len(tried)} traces on Spark {target.version} in {time.monotonic() - began:.0f} s, no disagreement ",
            end="",
        )
    assert len(tried) >= TRACES
