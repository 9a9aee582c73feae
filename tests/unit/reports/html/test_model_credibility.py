"""What case, engine and model agree on, and what the page says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.core.observation import Observation
from conformance.model.wrong_models import WRONG_MODELS
from conformance.suite import discovery
from reports.analysis.report import Report
from reports.html.model_credibility import voices
from reports.html.reference_model import reference_model
from reports.html.writer import write
from reports.results.reading import Results

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"


@dataclass(frozen=True)
class Opinion:
    """A model that says what it is told to."""

    observation: Observation
    as_expected: bool
    told: tuple[tuple[str, str], ...] = ()


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.of(Results.read(SAMPLE / "results.jsonl"), discovery.load([SAMPLE / "cases"]), reference_model)


def test_the_sample_has_a_violation_that_the_model_does_not_follow(report: Report) -> None:
    found = voices(report)
    assert found is not None
    wrong = [cell for cell in report.results.cells if cell.status == "violates"]
    assert [(one.case, one.target.name) for one in found.dissents] == [(cell.case, cell.target) for cell in wrong]
    (dissent,) = found.dissents
    assert not dissent.engine
    assert dissent.model
    assert not dissent.alike
    # All but the violation, the cell without an answer, and what is not about its version.
    silent = [cell for cell in report.results.cells if cell.status in ("broken", "not-applicable")]
    assert found.agreed == len(found.heard) - 1 == len(report.results.cells) - len(silent) - 1
    assert found.predicted == found.cases == len(report.cases)


def test_a_model_that_says_otherwise_is_told(report: Report, tmp_path: Path) -> None:
    case = next(iter(report.cases))

    def otherwise(of, version):
        return Opinion(Observation(case=of.id, columns=(), steps=()), as_expected=of.id != case)

    found = voices(replace(report, model=otherwise))
    assert found is not None
    assert {one.case for one in found.dissents if one.engine} == {case}
    assert found.alike == 0
    write(replace(report, model=otherwise), tmp_path)
    assert "the model says otherwise than case and engine" in (tmp_path / "about.html").read_text()


def test_what_a_model_does_not_know_is_counted_and_not_judged(report: Report) -> None:
    unknown = next(iter(report.cases))
    found = voices(
        replace(report, model=lambda case, version: None if case.id == unknown else reference_model(case, version))
    )
    assert found is not None
    assert found.predicted == found.cases - 1
    assert unknown not in {one.case for one in (*found.heard, *found.dissents)}


def test_killers_are_those_of_the_run(report: Report) -> None:
    found = voices(report)
    assert found is not None
    assert found.wrong == len(WRONG_MODELS)
    assert found.killed == sum(wrong.killed_by in report.cases for wrong in WRONG_MODELS)
    killers = {
        case.id: case for case in discovery.load().cases if case.id in {wrong.killed_by for wrong in WRONG_MODELS}
    }
    every = voices(replace(report, cases=killers))
    assert every is not None
    assert every.killed == every.wrong


def test_without_cases_or_a_model_nothing_is_claimed(report: Report, tmp_path: Path) -> None:
    assert voices(replace(report, model=None)) is None
    assert voices(replace(report, cases={})) is None
    write(replace(report, model=None), tmp_path)
    assert "wrong models" not in (tmp_path / "about.html").read_text()


@pytest.mark.parametrize("reused", [0, 1, 2])
def test_the_page_says_what_was_reused(report: Report, tmp_path: Path, reused: int) -> None:
    cells = tuple(cell.model_copy(update={"reused": at < reused}) for at, cell in enumerate(report.results.cells))
    results = Results(report.results.header, cells, report.results.footer)
    write(Report.of(results, discovery.load([SAMPLE / "cases"])), tmp_path)
    text = (tmp_path / "about.html").read_text()
    said = ["nothing: every answer was given in this run", "1 answer of earlier runs", "2 answers of earlier runs"]
    assert [one in text for one in said] == [at == reused for at in range(3)]


def test_the_page_says_it(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    found, text = voices(report), (tmp_path / "about.html").read_text()
    assert found is not None
    assert f"<b>{found.agreed}</b> of {len(found.heard)} answers: case, engine and model agree" in text
    assert f"<b>{found.predicted}</b> of {found.cases} cases: the model predicts every answer" in text
    assert "engine otherwise than case and model" in text
