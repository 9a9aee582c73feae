"""A mistake in the code of a case's author is broken, never a violation of Spark's; unless the case expects the error."""

import pytest

from conformance.core.case import Upgrade
from conformance.core.observation import ErrorSeen, OwnCodeError
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, judge_upgrade
from conformance.judging.verdict import judge
from tests.support.observations import NEWEST, OLD, batch, case, change, differs, expect, observed, step

MISTAKE = OwnCodeError(
    raised="KeyError('MY_ENV_VAR')",
    at="acme_jobs/totals.py:12",
    during="while building the query",
    traceback='File "acme_jobs/totals.py", line 12, in build\n  os.environ["MY_ENV_VAR"]\nKeyError: \'MY_ENV_VAR\'',
    printed="reading the settings\n",
)
ERROR = ErrorSeen(stage="analysis", classes=("KeyError", "LookupError"), message="'MY_ENV_VAR'", own_code=MISTAKE)
NOTES = (
    "your code raised KeyError('MY_ENV_VAR') at acme_jobs/totals.py:12, while building the query",
    'File "acme_jobs/totals.py", line 12, in build',
    '  os.environ["MY_ENV_VAR"]',
    "KeyError: 'MY_ENV_VAR'",
    "it printed: reading the settings",
)


def test_it_is_broken_with_the_line_the_traceback_and_the_output():
    verdict = judge(case(None), NEWEST, observed(step(error=ERROR)))
    assert (verdict.status, verdict.findings, verdict.notes) == ("broken", (), NOTES)


def test_of_long_output_the_end_is_shown():
    many = MISTAKE.model_copy(update={"printed": "".join(f"line {number}\n" for number in range(50)), "traceback": ""})
    expected = ("it printed 30 lines before", *(f"it printed: line {number}" for number in range(30, 50)))
    assert many.evidence() == expected


def test_a_missing_module_has_its_remedy():
    raised = """ModuleNotFoundError("No module named 'acme.rates'")"""
    missing = MISTAKE.model_copy(update={"raised": raised, "traceback": "", "printed": ""})
    (remedy,) = missing.evidence()
    assert remedy == "acme.rates: --code FOLDER if it is yours, --requirements FILE if it is a package"


@pytest.mark.parametrize(("name", "status"), [("AnalysisException", "broken"), ("KeyError", "conforms")])
def test_only_an_error_that_the_case_expects_is_as_expected(name, status):
    wanted = expect(error={"class": (name,)})
    assert judge(case(wanted), NEWEST, observed(step(error=ERROR))).status == status


def test_a_feature_that_is_missing_is_unsupported_and_any_other_mistake_broken():
    entry = differs("<3.4", unsupported="arrived in 3.4", link="SPARK-1")
    missing = ERROR.model_copy(update={"classes": ("AttributeError",), "message": "no attribute 'x'"})
    assert judge(case(None, differs=(entry,)), OLD, observed(step(error=missing))).status == "unsupported"
    other = judge(case(None, differs=(entry,)), OLD, observed(step(error=ERROR)))
    assert (other.status, other.notes) == ("broken", NOTES)


def test_the_same_holds_where_a_checkpoint_is_resumed():
    two = case(None, None)
    seen = observed(step(1, batch(0)), step(2, error=ERROR))
    verdict = judge_upgrade(CheckpointHandoff(two, 2), VersionPair(OLD, NEWEST), seen)
    assert (verdict.status, verdict.notes) == ("broken", NOTES)


ANOTHER_ROW = change(rows=[["12:00", "12:10", 2]])


def test_a_broken_cell_documents_no_difference():
    """What the entry says was not seen: no page may call the cell a known difference or bug."""
    entry = differs("<3.4", because="it emits early", bug=True, link="SPARK-1", steps={1: ANOTHER_ROW})
    verdict = judge(case(None, differs=(entry,)), OLD, observed(step(error=ERROR)))
    assert (verdict.status, verdict.differs) == ("broken", None)


def test_nor_does_a_handoff_that_was_not_judged():
    entry = Upgrade(because="it emits twice", link="SPARK-1", steps={2: ANOTHER_ROW})
    seen = observed(step(1, batch(0)), step(2, error=ERROR))
    handoff = CheckpointHandoff(case(None, None, upgrades=(entry,)), 2)
    verdict = judge_upgrade(handoff, VersionPair(OLD, NEWEST), seen)
    assert (verdict.status, verdict.differs) == ("broken", None)
