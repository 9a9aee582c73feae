"""How the verdict on a checkpoint is shown everywhere: sentence, mark, colour, exit code, and its words in files and JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.judging.verdict import Outcome, Status
from reports.results.status import MARKS, Mark, Statement

OUTCOMES: Mapping[Outcome, Mark] = {
    "resumed": Mark("●", "resumed", "green"),
    "refused": Mark("⊘", "refused", "yellow"),
    "fails later": Mark("✗", "resumed, then failed", "bold red"),
    "unclear": Mark("▲", "failed with an error that does not say what is wrong", "magenta"),
    "other rows": Mark("✗", "resumed with other rows, or lost rows", "bold red"),
    "no answer": Mark("!", "no answer", "bold yellow"),
}
"""Every outcome, in display order."""

BUG = MARKS["bug"]
"""The mark of a cell whose entry names a known bug, whatever the outcome."""

Colour: TypeAlias = Status | Literal["refused"]
"""How a cell with a checkpoint is drawn and counted: by its status, but ``refused`` if the case documents that it is."""

_ABNORMAL: Sequence[Colour] = ("violates", "flaky", "refused", "differs", "bug", "broken", "unsupported")
NORMAL: Sequence[Status] = ("conforms", "not-run", "not-applicable")
WORST_FIRST: Sequence[Colour] = (*_ABNORMAL, *NORMAL)

_DOCUMENTED: Sequence[Status] = ("differs", "bug")
_AS_DOCUMENTED: Mapping[Outcome, Mark] = {
    outcome: replace(mark if outcome == "refused" else MARKS["differs"], word=f"{mark.word}, as documented")
    for outcome, mark in OUTCOMES.items()
} | {"resumed": replace(MARKS["differs"], word="resumed with the same rows, otherwise as documented")}
_OF_A_STATUS: Mapping[Status, Mark] = {
    **MARKS,
    "conforms": OUTCOMES["resumed"],
    "unsupported": replace(MARKS["unsupported"], word="unsupported, as documented"),
    "violates": replace(MARKS["violates"], word="not as expected"),
    "not-applicable": replace(MARKS["not-applicable"], word="no checkpoint"),
}


def mark_of(status: Status, outcome: Outcome | None) -> Mark:
    """Return the mark of a cell with a checkpoint: of the outcome that its case documents, else of its status."""
    return _AS_DOCUMENTED[outcome] if outcome is not None and status in _DOCUMENTED else _OF_A_STATUS[status]


def colour_of(status: Status, outcome: Outcome | None) -> Colour:
    """Return the colour of such a cell."""
    if outcome is None or status not in _DOCUMENTED:
        return status
    return "refused" if outcome == "refused" else "differs"


CHECKPOINT_MARKS: Sequence[Mark] = tuple(
    dict.fromkeys(mark_of(status, outcome) for status in MARKS for outcome in OUTCOMES)
)
"""Every mark of a cell with a checkpoint, in display order."""

_WORST_FIRST: tuple[Outcome, ...] = ("refused", "unclear", "fails later", "other rows", "no answer", "resumed")

_PHRASES: Mapping[Outcome, str] = {
    "resumed": "the checkpoint resumes{on}",
    "refused": "the checkpoint is refused{on}",
    "fails later": "the checkpoint resumes{on}, then the query fails",
    "unclear": "the query fails{on} with an error that does not say what is wrong",
    "other rows": "the checkpoint resumes{on} with other rows",
    "no answer": "no answer about the checkpoint{on}",
}


def phrase(verdict: CheckpointVerdict, on: str = "") -> str:
    """Return ``the checkpoint is refused on 4.3.0``; ``on``: the version that resumed it, if it is named."""
    if verdict.fails_anyway:
        return "the checkpoint resumes on neither version"
    return _PHRASES[verdict.outcome].format(on=f" on {on}" if on else "")


def statement(verdict: CheckpointVerdict, on: str, where: str = "", details: tuple[str, ...] = ()) -> Statement:
    """Return ``⊘ the checkpoint is refused on 4.3.0, handed over before step 3: INCOMPATIBLE``; ``where``: what follows the version."""
    glyph = BUG.glyph if verdict.fails_anyway else OUTCOMES[verdict.outcome].glyph
    error = f": {verdict.error.title}" if verdict.error is not None else ""
    return Statement(kind(verdict), glyph, f"{phrase(verdict, on)}{where}{error}", details)


Kind: TypeAlias = Literal["violates", "broken", "bug", "conforms"]
"""The status of a cell that has the colour of a verdict where nothing but the same rows is right; worst first."""


def kind(verdict: CheckpointVerdict) -> Kind:
    """Return how to draw a verdict where nothing but the same rows is right."""
    if verdict.outcome in ("resumed", "no answer"):
        return "conforms" if verdict.outcome == "resumed" else "broken"
    return "bug" if verdict.fails_anyway else "violates"


def severity(verdict: CheckpointVerdict) -> tuple[int, int]:
    """Return the key to sort by, the worst first."""
    return get_args(Kind).index(kind(verdict)), _WORST_FIRST.index(verdict.outcome)


def exit_code(verdict: CheckpointVerdict) -> int:
    """Return the exit code where nothing but the same rows is right: 1 if a change of version breaks the query, 3 without an answer."""
    return {"conforms": 0, "bug": 0, "violates": 1, "broken": 3}[kind(verdict)]


def of_crashes(outcomes: Iterable[Outcome]) -> int:
    """Return the exit code of crashes: 0 if no query emits other rows or loses some, 1 if one does, 3 without an answer."""
    return combined({"other rows": 1, "no answer": 3}.get(outcome, 0) for outcome in outcomes)


def combined(codes: Iterable[int]) -> int:
    """Return the exit code of several answers: 1 if one is bad, else 2 or 3 if one has that, 0 if all are good; 3 without any."""
    having = set(codes)
    return next((code for code in (1, 2, 3, 0) if code in having), 3)
