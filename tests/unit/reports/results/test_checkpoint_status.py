"""How a verdict on a checkpoint is shown: one sentence, sign and exit code for every command, and the words of files and JSON."""

from itertools import product

import pytest

from conformance.core.observation import ErrorSeen
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.judging.verdict import Outcome, Status
from reports.results.checkpoint_status import (
    CHECKPOINT_MARKS,
    OUTCOMES,
    WORST_FIRST,
    colour_of,
    combined,
    exit_code,
    mark_of,
    of_crashes,
    phrase,
    statement,
)
from reports.results.status import MARKS, exit_code_of

GONE = ErrorSeen(stage="run", classes=("STATE_GONE",), message="it is gone")
STUMBLED = ErrorSeen(stage="run", classes=("NullPointerException",), message="")


@pytest.mark.parametrize(
    ("verdict", "line", "code"),
    [
        (CheckpointVerdict("resumed", batch=1), "● the checkpoint resumes on 4.3.0 here", 0),
        (
            CheckpointVerdict("other rows", difference="step 3"),
            "✗ the checkpoint resumes on 4.3.0 with other rows here",
            1,
        ),
        (CheckpointVerdict("refused", GONE), "⊘ the checkpoint is refused on 4.3.0 here: STATE_GONE", 1),
        (
            CheckpointVerdict("fails later", GONE, batch=4),
            "✗ the checkpoint resumes on 4.3.0, then the query fails here: STATE_GONE",
            1,
        ),
        (
            CheckpointVerdict("unclear", STUMBLED),
            "▲ the query fails on 4.3.0 with an error that does not say what is wrong here: NullPointerException",
            1,
        ),
        (CheckpointVerdict("no answer", reason="lost"), "! no answer about the checkpoint on 4.3.0 here", 3),
        (
            CheckpointVerdict("refused", GONE, fails_anyway=True),
            "▲ the checkpoint resumes on neither version here: STATE_GONE",
            0,
        ),
    ],
)
def test_every_outcome(verdict: CheckpointVerdict, line: str, code: int) -> None:
    shown = statement(verdict, "4.3.0", " here")
    assert f"{shown.glyph} {shown.text}" == line
    assert exit_code(verdict) == code


def test_a_summary_names_no_version() -> None:
    assert phrase(CheckpointVerdict("fails later", GONE)) == "the checkpoint resumes, then the query fails"


def test_the_worst_answer_is_the_exit_code() -> None:
    assert [combined(codes) for codes in ([], [0, 0], [0, 3], [3, 2, 0], [3, 2, 1])] == [3, 0, 3, 2, 1]


def test_cells() -> None:
    assert exit_code_of(["conforms", "bug", "not-applicable"]) == 0
    assert exit_code_of(["conforms", "violates", "broken"]) == 1
    assert exit_code_of(["conforms", "not-run"]) == 3
    assert exit_code_of(["not-applicable"]) == exit_code_of([]) == 3


def test_crashes() -> None:
    """An error is no fault there, clear or not: other rows are."""
    assert of_crashes(["resumed", "refused", "fails later", "unclear"]) == 0
    assert of_crashes(["other rows", "no answer"]) == 1
    assert of_crashes(["resumed", "no answer"]) == of_crashes([]) == 3


@pytest.mark.parametrize(
    ("status", "outcome", "sign", "colour"),
    [
        ("conforms", "resumed", "● resumed", "conforms"),
        ("differs", "resumed", "◆ resumed with the same rows, otherwise as documented", "differs"),
        ("bug", "other rows", "◆ resumed with other rows, or lost rows, as documented", "differs"),
        ("differs", "fails later", "◆ resumed, then failed, as documented", "differs"),
        ("bug", "refused", "⊘ refused, as documented", "refused"),
        ("unsupported", "refused", "– unsupported, as documented", "unsupported"),
        ("violates", "refused", "✗ not as expected", "violates"),
        ("broken", "no answer", "! broken: the harness or your code failed", "broken"),
        ("not-applicable", None, "· no checkpoint", "not-applicable"),
        ("not-run", "no answer", "? not run", "not-run"),
    ],
)
def test_how_a_cell_with_a_checkpoint_is_shown(status: Status, outcome: Outcome | None, sign: str, colour: str) -> None:
    mark = mark_of(status, outcome)
    assert (f"{mark.glyph} {mark.word}", colour_of(status, outcome)) == (sign, colour)


def test_every_cell_with_a_checkpoint_has_its_place() -> None:
    """Also one of a file that another program wrote."""
    for status, outcome in product(MARKS, [*OUTCOMES, None]):
        assert mark_of(status, outcome) in CHECKPOINT_MARKS or outcome is None
        assert colour_of(status, outcome) in WORST_FIRST
