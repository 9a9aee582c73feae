"""How a verdict on a checkpoint is shown: one sentence, sign and exit code for every command, and the words of files and JSON."""

from __future__ import annotations

import pytest

from conformance.core.observation import ErrorSeen
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from reports.results.checkpoint_status import (
    OF_A_CRASH,
    combined,
    exit_code,
    met,
    of_crashes,
    of_upgrades,
    phrase,
    statement,
)

GONE = ErrorSeen(stage="run", classes=("STATE_GONE",), message="it is gone")
STUMBLED = ErrorSeen(stage="run", classes=("NullPointerException",), message="")


@pytest.mark.parametrize(
    ("verdict", "line", "json", "in_file", "code"),
    [
        (CheckpointVerdict("resumed", batch=1), "● the checkpoint resumes on 4.3.0 here", "resumed", "continues", 0),
        (
            CheckpointVerdict("other rows", difference="step 3"),
            "✗ the checkpoint resumes on 4.3.0 with other rows here",
            "other rows",
            "violates",
            1,
        ),
        (
            CheckpointVerdict("refused", GONE),
            "⊘ the checkpoint is refused on 4.3.0 here: STATE_GONE",
            "refused",
            "refused",
            1,
        ),
        (
            CheckpointVerdict("fails later", GONE, batch=4),
            "✗ the checkpoint resumes on 4.3.0, then the query fails here: STATE_GONE",
            "fails",
            "refused",
            1,
        ),
        (
            CheckpointVerdict("unclear", STUMBLED),
            "▲ the query fails on 4.3.0 with an error that does not say what is wrong here: NullPointerException",
            "refused",
            "unclear",
            1,
        ),
        (
            CheckpointVerdict("no answer", reason="lost"),
            "! no answer about the checkpoint on 4.3.0 here",
            "unknown",
            "broken",
            3,
        ),
        (
            CheckpointVerdict("refused", GONE, fails_anyway=True),
            "▲ the checkpoint resumes on neither version here: STATE_GONE",
            "fails everywhere",
            "refused",
            0,
        ),
    ],
)
def test_every_outcome(verdict: CheckpointVerdict, line: str, json: str, in_file: str, code: int) -> None:
    shown = statement(verdict, "4.3.0", " here")
    assert f"{shown.glyph} {shown.text}" == line
    assert (met(verdict), OF_A_CRASH[verdict.outcome], exit_code(verdict)) == (json, in_file, code)


def test_a_query_that_stumbles_after_a_micro_batch_has_resumed() -> None:
    assert met(CheckpointVerdict("unclear", STUMBLED, batch=4)) == "fails"


def test_a_summary_names_no_version() -> None:
    assert phrase(CheckpointVerdict("fails later", GONE)) == "the checkpoint resumes, then the query fails"


def test_the_worst_answer_is_the_exit_code() -> None:
    assert [combined(codes) for codes in ([], [0, 0], [0, 3], [3, 2, 0], [3, 2, 1])] == [3, 0, 3, 2, 1]


def test_upgrades() -> None:
    assert of_upgrades(["resumes", "refused", "not-applicable"]) == 0
    assert of_upgrades(["resumes", "violates", "broken"]) == 1
    assert of_upgrades(["resumes", "not-run"]) == 3
    assert of_upgrades(["not-applicable"]) == of_upgrades([]) == 3


def test_crashes() -> None:
    """An error is no fault there, clear or not: other rows are."""
    assert of_crashes(["continues", "refused", "unclear"]) == 0
    assert of_crashes(["violates", "broken"]) == 1
    assert of_crashes(["continues", "broken"]) == of_crashes([]) == 3
