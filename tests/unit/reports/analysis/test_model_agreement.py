"""How far case, engine and model agree, and what the page says about it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.prediction import CasePredictions, Prediction
from conformance.suite import discovery
from reports.analysis import model_agreement
from reports.analysis.report import Report
from reports.html.writer import write
from reports.results.reading import Results
from tests.support.whole_suite import whole_suite

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.of(Results.read(SAMPLE / "results.jsonl"), discovery.load([SAMPLE / "cases"])).with_model()


def test_the_model_does_not_predict_the_violation_of_the_sample(report: Report) -> None:
    found = report.model
    assert found is not None
    wrong = [cell for cell in report.results.cells if cell.status == "violates"]
    assert [(one.case, one.target.name) for one in found.disagreements] == [(cell.case, cell.target) for cell in wrong]
    (one,) = found.disagreements
    assert not one.engine
    assert one.model
    assert not one.equivalent
    # All but the violation, the cell without an answer, and what is not about its version.
    silent = [cell for cell in report.results.cells if cell.status in ("broken", "not-applicable")]
    assert found.agreed == len(found.predicted) - 1 == len(report.results.cells) - len(silent) - 1
    assert found.predicted_cases == found.cases == len(report.cases)


def test_a_model_that_disagrees_is_listed(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(iter(report.cases))

    class Silent(CasePredictions):
        def on(self, version: SparkVersion) -> Prediction:
            return replace(
                super().on(version), observation=Observation(case=self.case.id, columns=(), steps=()), steps=()
            )

    monkeypatch.setattr(model_agreement, "CasePredictions", Silent)
    monkeypatch.setattr(model_agreement, "as_expected", lambda of, prediction: of.id != case)
    otherwise = report.with_model()
    agreement = otherwise.model
    assert agreement is not None
    assert {one.case for one in agreement.disagreements if one.engine} == {case}
    assert agreement.equivalent == 0
    write(otherwise, tmp_path)
    assert "the model disagrees with the case and the engine" in (tmp_path / "about.html").read_text()


def test_a_case_that_the_model_cannot_predict_is_counted_but_not_judged(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = next(iter(report.cases))

    class Ignorant(CasePredictions):
        def on(self, version: SparkVersion) -> Prediction:
            if self.case.id == unknown:
                raise Unpredictable("nothing")
            return super().on(version)

    monkeypatch.setattr(model_agreement, "CasePredictions", Ignorant)
    agreement = report.with_model().model
    assert agreement is not None
    assert agreement.predicted_cases == agreement.cases - 1
    assert unknown not in {one.case for one in (*agreement.predicted, *agreement.disagreements)}


def test_wrong_models_are_detected_by_the_cases_of_the_run(report: Report) -> None:
    found = report.model
    assert found is not None
    assert found.wrong_models == len(WRONG_MODELS)
    assert found.detected == sum(wrong.detected_by in report.cases for wrong in WRONG_MODELS)
    detecting = {
        case.id: case for case in whole_suite().cases if case.id in {wrong.detected_by for wrong in WRONG_MODELS}
    }
    every = replace(report, cases=detecting).with_model().model
    assert every is not None
    assert every.detected == every.wrong_models


def test_without_cases_or_a_model_nothing_is_claimed(report: Report, tmp_path: Path) -> None:
    assert Report.of(report.results, discovery.load([SAMPLE / "cases"])).model is None
    assert replace(report, cases={}).with_model().model is None
    write(replace(report, model=None), tmp_path)
    assert "wrong models" not in (tmp_path / "about.html").read_text()


@pytest.mark.parametrize("reused", [0, 1, 2])
def test_the_page_says_how_many_results_were_cached(report: Report, tmp_path: Path, reused: int) -> None:
    cells = tuple(cell.model_copy(update={"reused": at < reused}) for at, cell in enumerate(report.results.cells))
    results = Results(report.results.header, cells, report.results.footer)
    write(Report.of(results, discovery.load([SAMPLE / "cases"])), tmp_path)
    text = (tmp_path / "about.html").read_text()
    said = [
        "none: every result was produced in this run",
        "1 result cached from earlier runs",
        "2 results cached from earlier runs",
    ]
    assert [one in text for one in said] == [at == reused for at in range(3)]


def test_the_page_says_it(report: Report, tmp_path: Path) -> None:
    write(report, tmp_path)
    found, text = report.model, re.sub("</?span[^>]*>", "", (tmp_path / "about.html").read_text())
    assert found is not None
    assert f"<b>{found.agreed}</b> of {len(found.answers)} results: case, engine and model agree" in text
    assert f"<b>{found.predicted_cases}</b> of {found.cases} cases: the model predicts every result" in text
    assert "the engine disagrees with the case and the model" in text
