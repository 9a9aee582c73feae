"""Tables of delays against engines that run the queries with these delays: the counts are the engine's."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cli.progress import NoAnswers
from conformance.core.observation import Observation
from conformance.own_job.delays import DelayTable, delay_table_of
from conformance.own_job.explained_job import answer_of, explain_query
from conformance.own_job.job_case import own_function
from conformance.runner.resources import Concurrency, EngineUse
from harness.driver.backend import DELAY
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Target, Targets
from tests.support.drawn_jobs import GROUPING, HEAD, DrawnJob, drawn_jobs
from tests.support.effort import full_run_only

JOBS = drawn_jobs(int(os.environ.get("CONFORMANCE_SEED") or "5"), 20)
CODE = HEAD + "\n\n".join(job.code for job in JOBS)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, EngineUse]]:
    folder: Path = tmp_path_factory.mktemp("jobs")
    (folder / "drawn_jobs.py").write_text(CODE)
    (target,) = Targets.load().select(["4.3.0"])
    where = EngineUse(runtime=RuntimeOptions(own_code=OwnCode((folder,))), concurrency=Concurrency())
    with ExitStack() as stack:
        yield target, replace(where, kept=stack.enter_context(where.keeping_engines()))


@full_run_only
@pytest.mark.parametrize("job", JOBS, ids=[f"{job.name}-{job.kind}" for job in JOBS])
def test_the_counts_of_a_table_are_those_of_an_engine_with_these_delays(
    job: DrawnJob, engine: tuple[Target, EngineUse]
) -> None:
    target, where = engine
    answer = explain_query(own_function(f"drawn_jobs:{job.name}"), job.samples, target, where, NoAnswers(), batches=4)
    table = delay_table_of(answer, where, NoAnswers())
    assert len(table.checked) == 3
    complete = _results(_run(table, table.points[-1].delay_ms, where))
    for point in table.points[:: len(table.points) // 5 or 1][:5]:
        seen = _run(table, point.delay_ms, where)
        assert point.state == max(sum(batch.state) for batch in seen.batches), point
        assert point.dropped == _dropped(job, seen), point
        assert point.changed == (complete - _results(seen)).total(), point


def _run(table: DelayTable, delay_ms: int, where: EngineUse) -> Observation:
    case = table.answer.job.case
    conf = {**case.conf, DELAY: f"{delay_ms} milliseconds"}
    other = case.model_copy(update={"id": f"{case.id}-{delay_ms}", "conf": conf})
    return answer_of(other, table.answer.target, where, NoAnswers())


def _results(seen: Observation) -> Counter[str]:
    return Counter(str(row) for batch in seen.batches for row in batch.rows)


def _dropped(job: DrawnJob, seen: Observation) -> int:
    """Count the rows that count nowhere: of windows, those that no result names; else what the operator says."""
    if job.kind in GROUPING:
        named = {number for batch in seen.batches for row in batch.rows for number in json.loads(json.dumps(row[-1]))}
        return len(job.samples[0].rows) - len(named) - 1  # the last row is in state
    return sum(batch.dropped or 0 for batch in seen.batches)
