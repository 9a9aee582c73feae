"""A violation that settings of the engine explain is called so: the case runs again with Spark's defaults, until these are few."""

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.core.observation import Identity, Observation
from conformance.runner.cases import JudgeCases, cell_record, cells_of, settings_to_try
from harness.scheduling.answer_cache import AnswerCache
from harness.scheduling.cell_run import CellRun
from tests.support.cells import LOST
from tests.support.miniature.engine import IDENTITY
from tests.support.miniature.runtime import MiniatureRuntime
from tests.support.miniature.target import SPARK_359
from tests.unit.conformance.runner.test_cases import CASES, Recorder, cases_at, recorded

BLAME = "so does Spark's own test S1; the engine is probably wrong."
STATIC = "not tried, as no session changes it: spark.static=1; --conf changes settings"
(CASE,) = cases_at(CASES)


@pytest.fixture(autouse=True)
def _blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.oracle.cross_check.notes_of_the_model", lambda *_: (BLAME,))


def asked(tmp_path: Path, mode: str) -> tuple[Recorder, CellRun]:
    seen = recorded(MiniatureRuntime(tmp_path, mode), [CASE])
    return seen, seen.runs[CASE.id]


@pytest.mark.parametrize("causes", ["a", "e", "i", "ai", "ceg"], ids="".join)
def test_the_settings_that_explain_a_violation_are_named_and_no_others(tmp_path: Path, causes: str) -> None:
    seen, run = asked(tmp_path, " ".join(["has", *(f"spark.sql.{cause}" for cause in causes)]))
    verdict, said = seen.verdicts[CASE.id], [f"spark.sql.{cause}=off" for cause in causes]
    assert verdict.status == "violates"
    assert verdict.explained_by == tuple(said)
    assert verdict.notes == (
        f"explained by {' and '.join(said)}: with Spark's default the case conforms, as was tried",
        "so does Spark's own test S1; these settings are the cause.",
    )
    assert verdict.findings
    assert len(run.tried) <= 1 + 3 * 9
    assert len(run.observations) == 1
    assert cell_record(run.task, verdict, run).explained_by == tuple(said)


def test_what_the_defaults_do_not_mend_is_said_with_what_no_session_changes(tmp_path: Path) -> None:
    seen, run = asked(tmp_path, "has spark.static")
    verdict = seen.verdicts[CASE.id]
    assert verdict.explained_by == ()
    tried = "with Spark's defaults of the engine's own settings, the case violates as well"
    assert verdict.notes[:2] == (tried, STATIC)
    assert len(run.tried) == 1
    assert "probably wrong" not in verdict.describe()


def test_a_case_that_conforms_runs_once_and_so_does_one_of_a_plain_engine(tmp_path: Path) -> None:
    for mode, blamed in {"has": False, "forgets-state": True}.items():
        seen, run = asked(tmp_path, mode)
        assert run.tried == ()
        assert (BLAME in seen.verdicts[CASE.id].notes) is blamed
        assert seen.verdicts[CASE.id].explained_by == ()


@pytest.mark.parametrize(
    ("own", "tried", "said", "blamed"),
    [
        ({"settings": ("spark.sql.a=1",)}, (LOST,), "the case violates as well", True),
        ({"settings": ("spark.sql.a=1",)}, (None,), "the case gives no answer", False),
        ({"fixed": ("spark.a=1", "jar acme.jar")}, (), "no session changes it: spark.a=1, jar acme.jar; --conf", False),
    ],
)
def test_what_else_may_be_the_cause_is_named(
    own: dict[str, tuple[str, ...]], tried: tuple[Observation | None, ...], said: str, blamed: bool, tmp_path: Path
) -> None:
    _, run = asked(tmp_path, "forgets-state")
    tried = tuple(seen and run.observations[0] for seen in tried)
    run = replace(run, identity=Identity(**{**IDENTITY, **own}), tried=tried)  # type: ignore[arg-type]
    verdict = JudgeCases().verdict(run)
    assert verdict.status == "violates"
    assert said in verdict.describe()
    assert (BLAME in verdict.notes) is blamed
    assert JudgeCases().again(run) is None


def test_what_the_case_sets_itself_is_not_tried() -> None:
    own = Identity(**{**IDENTITY, "settings": ("spark.sql.a=1", "spark.sql.b=1")})  # type: ignore[arg-type]
    (task,) = cells_of([CASE.model_copy(update={"conf": {"spark.sql.a": "2"}})], [SPARK_359])
    run = CellRun(task, (LOST,), None, 0, identity=own)
    assert settings_to_try(run, []) == (("spark.sql.b",), ())
    assert settings_to_try(replace(run, identity=None), []) == ((), ())
    assert JudgeCases().again(replace(run, observations=(), failure="no engine")) is None


def test_no_violation_of_such_an_engine_is_taken_from_the_cache(tmp_path: Path) -> None:
    """Its explanation would be missing."""
    for _ in range(2):
        with AnswerCache(tmp_path / "answers.sqlite") as cache:
            runtime = MiniatureRuntime(tmp_path, "has spark.sql.b", fingerprint="x")
            seen = recorded(runtime, [CASE], cache=cache)
        assert (runtime.started, seen.verdicts[CASE.id].explained_by) == (1, ("spark.sql.b=off",))
