"""Faulty jobs on real engines: the cause is named, no second one, and each row has its fate."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cli.progress import NoAnswers
from conformance.own_job.delays import curve_of
from conformance.own_job.explained_job import explain_query
from conformance.own_job.job_run import own_function
from conformance.runner.resources import Concurrency, EngineUse
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Targets
from tests.support.effort import FULL
from tests.support.explained_jobs import CODE, JOBS


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"] if FULL else ["4.3.0"])
def test_a_job_is_explained(version: str, tmp_path: Path) -> None:
    (tmp_path / "faulty_jobs.py").write_text(CODE)
    (target,) = Targets.load().select([version])
    where = EngineUse(runtime=RuntimeOptions(own_code=OwnCode((tmp_path,))), concurrency=Concurrency())
    with ExitStack() as stack:
        where = replace(where, kept=stack.enter_context(where.keeping_engines()))
        for name, job in JOBS.items() if FULL else [("short-delay", JOBS["short-delay"])]:
            query = replace(own_function(f"faulty_jobs:{job.function}"), output_mode=job.mode, trigger=job.trigger)
            answer = explain_query(query, job.samples, target, where, NoAnswers(), batches=6)
            assert [cause.id for cause in answer.causes] == [*job.causes], name
            if job.fates and not (job.fails_on_4 and version >= "4"):
                assert Counter(row.fate for row in answer.job.fates.rows) == {**job.fates}, name
            if name == "short-delay":
                # tests/engine/test_delays.py has drawn queries, weekly.
                curve = curve_of(answer, where, NoAnswers())
                assert [(point.dropped, point.state) for point in curve.points] == [(2, 6), (2, 8), (1, 10), (0, 13)]
                assert len(curve.checked) == 3
