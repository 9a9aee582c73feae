"""Faulty and sound jobs on real engines: the cause is named, by the sample and by the progress of the same run, and no second one."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cli.progress import NoAnswers
from conformance.own_job.delays import delay_table_of
from conformance.own_job.explained_job import explain_query
from conformance.runner.resources import Concurrency, EngineUse
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from harness.targets.targets import Targets
from tests.support.effort import FULL
from tests.support.explained_jobs import CODE, JOBS, named

VERSIONS = sorted({version for job in JOBS.values() for version in job.versions})


@pytest.mark.parametrize("version", VERSIONS if FULL else ["4.3.0"])
def test_a_job_is_explained(version: str, tmp_path: Path) -> None:
    (tmp_path / "faulty_jobs.py").write_text(CODE)
    (target,) = Targets.load().select([version])
    plain = EngineUse(runtime=RuntimeOptions(own_code=OwnCode((tmp_path,))), concurrency=Concurrency())
    wrong = {}
    with ExitStack() as stack:
        kept = replace(plain, kept=stack.enter_context(plain.keeping_engines()))
        for name in (name for name, job in JOBS.items() if version in job.versions and (FULL or name == "short-delay")):
            job = JOBS[name]
            where = replace(plain, runtime=replace(plain.runtime, conf=job.conf)) if job.conf else kept
            answer = explain_query(job.query, job.samples, target, where, NoAnswers(), batches=6)
            if (seen := named(answer)) != (expected := job.expected(version)):
                wrong[name] = seen, expected
            if name == "short-delay":
                # tests/engine/test_delays.py has drawn queries, weekly.
                table = delay_table_of(answer, where, NoAnswers())
                assert [(point.dropped, point.state) for point in table.points] == [(2, 6), (2, 8), (1, 10), (0, 13)]
                assert len(table.checked) == 3
    assert wrong == {}
