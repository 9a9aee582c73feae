"""A case that claims nothing yet is not violated: `conformance record` fills it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.language.problem import Report
from conformance.language.reader import case_from
from conformance.language.source import read_yaml
from conformance.own_job.case_run import run_on
from conformance.runner import resources
from conformance.runner.engines import Engines
from harness.runtimes.options import RuntimeOptions
from harness.scheduling.cell_run import Limits
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359

WINDOWS = Path(__file__).parents[3] / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml"


@pytest.fixture
def verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The verdict on a miniature engine's answer to the case without its expectations, with other keys."""
    monkeypatch.setattr(resources, "runtime_for", lambda *_, **__: MiniatureRuntime(tmp_path))

    def run(steps: int = 3, **keys: object):
        written = {**read_yaml(WINDOWS, Report(WINDOWS)).plain(), **keys}
        written["steps"] = [{"add": step["add"]} for step in written["steps"]][:steps]
        with Engines(RuntimeOptions(), Limits(jobs=1, step_timeout=60)) as engines:
            return run_on(engines, case_from(written, "mine"), SPARK_359).verdict

    return run


def test_it_says_how_to_fill_it_in(verdict):
    found = verdict()
    assert found.status == "broken"
    assert found.notes[0] == ("the case expects nothing yet: `conformance record mine.yaml` fills in what Spark does")
    # What came out is shown.
    assert "12:10" in found.describe()


def test_a_case_that_claims_something_is_violated(verdict):
    assert verdict(strength="observed").status == "violates"


def test_no_rows_and_no_error_conform(verdict):
    assert verdict(steps=1).status == "conforms"
