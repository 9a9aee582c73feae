"""A record may not say more than its evidence."""

from pathlib import Path

import pytest

from conformance.core.versions import SparkVersion, VersionRange
from conformance.policies.case import TARGET as MODEL
from reports.results.errors import UnusableResults
from reports.results.evidence import contradiction_in, contradiction_with
from reports.results.records import Cell, Run, TargetRecord
from tests.support.cells import handoff_cell
from tests.support.observations import batch, observed, step, window
from tests.support.runs import case_named, cell

TARGET = "spark-3.5.9"
GREEN = ("conforms", "differs", "bug", "unsupported")
OPEN = ("violates", "flaky", "broken", "not-run", "not-applicable")
ONE = observed(step(1, batch(0, window("12:00", "12:10", 1), watermark=5), watermark=7))
TWO = observed(step(1, batch(0, window("12:00", "12:10", 2), watermark=5), watermark=7))
TARGETS = {
    TARGET: TargetRecord(name=TARGET, spark="3.5.9"),
    "a-target": TargetRecord(name="a-target", spark="3.5.9"),
    MODEL: TargetRecord(name=MODEL, spark=MODEL, runtime=MODEL),
}
WITHOUT_INSTANTS = ONE.digest(instants=False)


def changed(one: Cell, **keys: object) -> Cell:
    return one.model_copy(update=keys)


def upgrade(met: str = "resumed", **keys: object) -> Cell:
    evidence = {"behaviour": ONE.behaviour_digest, "observation": ONE}
    if met == "not-applicable":
        evidence = {"behaviour": None, "observation": None, "notes": ("3.5.9 writes no checkpoint",)}
    return handoff_cell("late/a", met, **{**evidence, **keys})


def contradiction(one: Cell) -> str:
    """Why the record is refused; empty if it is accepted."""
    error = contradiction_in(Path("results.jsonl"), 7, one, TARGETS)
    return str(error).partition(", but ")[2].partition("; ")[0] if error is not None else ""


GREEN_CELLS = [
    *(cell("late/a", TARGET, status) for status in GREEN),
    *(upgrade(met) for met in ("resumed", "other rows", "refused", "unsupported")),
]
OPEN_CELLS = [
    *(cell("late/a", TARGET, status) for status in OPEN),
    *(upgrade(met) for met in ("violates", "broken", "not-run", "not-applicable")),
]


@pytest.mark.parametrize("one", [*GREEN_CELLS, *OPEN_CELLS], ids=lambda one: f"{one.status} {one.outcome}")
def test_a_cell_with_its_evidence_is_accepted(one) -> None:
    assert contradiction(one) == ""


@pytest.mark.parametrize("one", GREEN_CELLS, ids=lambda one: f"{one.status} {one.outcome}")
def test_a_green_cell_without_an_observation_or_with_findings_is_refused(one) -> None:
    findings = cell("late/a", TARGET, "violates").findings
    assert contradiction(changed(one, observation=None)) == "nothing was observed"
    assert contradiction(changed(one, findings=findings)) == "it has findings"


@pytest.mark.parametrize("one", OPEN_CELLS, ids=lambda one: f"{one.status} {one.outcome}")
def test_a_cell_that_is_not_green_needs_no_evidence(one) -> None:
    findings = () if one.status == "not-applicable" else cell("late/a", TARGET, "violates").findings
    assert contradiction(changed(one, observation=None, behaviour=None, findings=findings)) == ""


@pytest.mark.parametrize("target", ["a-target", MODEL, "spark-3.5.9"])
@pytest.mark.parametrize("status", GREEN)
def test_only_a_policy_case_that_conforms_needs_no_observation(target, status) -> None:
    policy_cell = changed(cell("late/a", TARGET, status), observation=None, behaviour=None, target=target)
    expected = "" if target == MODEL and status == "conforms" else "nothing was observed"
    assert contradiction(policy_cell) == expected


def test_an_upgrade_is_never_a_policy_case() -> None:
    assert contradiction(upgrade(observation=None, target=MODEL)) == "nothing was observed"


@pytest.mark.parametrize(
    "one", [one for one in GREEN_CELLS if one.status != "conforms"], ids=lambda one: f"{one.status} {one.outcome}"
)
def test_a_difference_needs_an_entry_of_the_case(one) -> None:
    assert contradiction(changed(one, differs=None)) == "no entry of the case says so"


def test_a_green_cell_says_what_became_of_its_checkpoint_if_it_has_one() -> None:
    assert contradiction(upgrade(outcome=None)) == "it does not say what the query did with the checkpoint"
    assert contradiction(changed(cell("late/a", TARGET), outcome="resumed")) == "no checkpoint was resumed"


def test_a_bug_needs_an_entry_that_calls_it_one() -> None:
    bug = cell("late/a", TARGET, "bug")
    assert bug.differs is not None
    entry = bug.differs.model_copy(update={"bug": False})
    assert contradiction(changed(bug, differs=entry)) == "the entry of the case names no bug"
    assert contradiction(changed(cell("late/a", TARGET, "conforms"), differs=entry)) == ""


@pytest.mark.parametrize("other", ["broken", "violates"])
def test_each_run_has_the_status_of_its_cell(other) -> None:
    digest = ONE.behaviour_digest
    same = Run(status="conforms", behaviour=digest, observation=ONE)
    one = changed(cell("late/a", TARGET), runs=(same, same), observation=ONE, behaviour=digest)
    assert contradiction(one) == ""
    another = same.model_copy(update={"status": other})
    for runs in ((same, another), (another, same)):
        assert contradiction(changed(one, runs=runs)) == "its runs have other statuses"


def test_runs_of_a_green_cell_showed_the_same() -> None:
    runs = tuple(Run(status="conforms", behaviour=seen.behaviour_digest, observation=seen) for seen in (ONE, TWO))
    one = changed(cell("late/a", TARGET), runs=runs)
    assert contradiction(one) == "its runs showed different behaviours"
    assert contradiction(changed(one, runs=runs[:1])) == ""


def test_the_message_names_the_line_the_cell_and_the_contradiction() -> None:
    bad = changed(cell("late/a", TARGET), observation=None)
    error = contradiction_in(Path("results.jsonl"), 7, bad, TARGETS)
    assert isinstance(error, UnusableResults)
    assert str(error) == (
        "results.jsonl: line 7 says that late/a on spark-3.5.9 has the status conforms, but nothing was observed; "
        "the line was changed after it was written; run again"
    )


@pytest.mark.parametrize(
    ("recorded", "accepted"),
    [
        ("0" * 64, False),
        (TWO.behaviour_digest, False),
        (ONE.behaviour_digest, True),
        (WITHOUT_INSTANTS, True),  # of a case that reads the clock
    ],
)
@pytest.mark.parametrize("status", ["conforms", "violates", "flaky"])
def test_the_digest_is_that_of_the_observation(recorded, accepted, status) -> None:
    why = "" if accepted else "its digest is not that of what was observed"
    one = changed(cell("late/a", TARGET), status=status, observation=ONE, behaviour=recorded)
    assert contradiction(one) == why
    assert contradiction(upgrade(behaviour=recorded)) == why
    run = Run(status=status, behaviour=recorded, observation=ONE)
    assert contradiction(changed(cell("late/a", TARGET), status=status, runs=(run,))) == why


@pytest.mark.parametrize("status", GREEN)
def test_a_green_answer_has_a_digest(status) -> None:
    one = changed(cell("late/a", TARGET, status), observation=ONE, behaviour=None)
    assert contradiction(one) == "it has no digest of what was observed"


@pytest.mark.parametrize("status", GREEN)
def test_a_green_answer_with_rows_names_its_columns(status) -> None:
    one = cell("late/a", TARGET, status)
    emits = one.observation is not None and any(batch.rows for step in one.observation.steps for batch in step.batches)
    without = one.observation.model_copy(update={"columns": ()}) if one.observation is not None else None
    assert contradiction(changed(one, observation=without)) == "it emitted rows and names no columns" * emits


@pytest.mark.parametrize("status", ["violates", "broken", "flaky"])
def test_a_digest_is_of_something(status) -> None:
    condensed = changed(cell("late/a", TARGET), status=status, observation=None, behaviour="0" * 64)
    assert contradiction(condensed) == "its digest is not that of what was observed"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"notes": ()}, "it does not say why"),
        ({"notes": ("the case is about Spark >=3.4",)}, "3.5.9 is among the versions that the case is about"),
        ({"notes": ("the case is about Spark >=9",)}, ""),
        ({"notes": ("the case is about Spark never",)}, "it names no versions that the case is about"),
        ({"notes": ("Connect does not return the plan of a micro-batch",)}, ""),
        ({"observation": ONE}, "something was observed"),
        ({"observation": ONE, "behaviour": ONE.behaviour_digest}, "something was observed"),
        ({"runs": (Run(status="not-applicable"),)}, "something was observed"),
    ],
)
def test_a_cell_that_does_not_apply_says_why_and_shows_nothing(values, why) -> None:
    assert contradiction(changed(cell("late/a", TARGET, "not-applicable"), **values)) == why


@pytest.mark.parametrize(
    ("spark", "status", "why"),
    [
        (None, "conforms", None),
        (None, "not-applicable", "the case is about this version"),
        (">=3", "not-applicable", "the case is about this version"),
        (">=4", "not-applicable", None),
        (">=4", "conforms", "the case is about Spark >=4"),
        (">=4", "violates", "the case is about Spark >=4"),
        (">=4", "not-run", None),
        (">=4", "broken", None),
    ],
)
def test_exactly_the_versions_that_a_case_is_about_have_an_answer(spark, status, why) -> None:
    case = case_named("late/a").model_copy(update={"spark": spark and VersionRange.parse(spark)})
    assert contradiction_with(case, SparkVersion(3, 5, 9), cell("late/a", TARGET, status)) == why


def test_a_runtime_may_be_unable_to_run_a_case_that_is_about_its_version() -> None:
    beyond = changed(cell("late/a", TARGET, "not-applicable"), notes=("Connect does not return the plan",))
    assert contradiction_with(case_named("late/a"), SparkVersion(3, 5, 9), beyond) is None


@pytest.mark.parametrize("condensed", [True, False])
def test_only_a_published_upgrade_may_be_without_what_was_observed(condensed: bool) -> None:
    one = upgrade("resumed", observation=None).model_copy(update={"behaviour": None})
    assert (contradiction_in(Path("upgrades.jsonl"), 2, one, TARGETS, condensed=condensed) is None) is condensed
