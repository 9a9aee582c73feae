"""How the verdict on a checkpoint is shown everywhere: sentence, mark, colour, exit code, and its words in files and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from conformance.judging.checkpoint_verdict import CheckpointVerdict, Outcome, UpgradeStatus
from reports.results.status import MARKS as OF_A_CELL
from reports.results.status import Mark, Statement

OUTCOMES: Mapping[Outcome, Mark] = {
    "resumed": Mark("●", "resumed with the same rows", "green"),
    "refused": Mark("⊘", "refused with a named error", "yellow"),
    "fails later": Mark("✗", "resumed, then failed", "bold red"),
    "unclear": Mark("▲", "failed with an error that does not say what is wrong", "magenta"),
    "other rows": Mark("✗", "resumed with other rows, or lost rows", "bold red"),
    "no answer": Mark("!", "no answer", "bold yellow"),
}
"""Every outcome, in display order."""

UPGRADES: Mapping[UpgradeStatus, Mark] = {
    "resumes": replace(OUTCOMES["resumed"], word="resumed"),
    "differs": Mark("◆", "resumed with other results, as documented", "cyan"),
    "refused": replace(OUTCOMES["refused"], word="refused, as documented"),
    "unsupported": Mark("–", "unsupported, as documented", "blue"),
    "violates": replace(OUTCOMES["other rows"], word="not as expected"),
    "broken": replace(OUTCOMES["no answer"], word="broken: the harness or your code failed"),
    "not-applicable": Mark("·", "no checkpoint", "dim"),
    "not-run": Mark("?", "not run", "yellow"),
}
"""What a case expects of an upgrade, and whether it is so: every status, in display order."""

BUG = OF_A_CELL["bug"]
"""The mark of a cell whose entry names a known bug, with any status."""

UPGRADES_WORST_FIRST: Sequence[UpgradeStatus] = (
    "violates",
    "refused",
    "differs",
    "broken",
    "unsupported",
    "resumes",
    "not-run",
    "not-applicable",
)
NORMAL: frozenset[UpgradeStatus] = frozenset({"resumes", "not-applicable", "not-run"})
EXPECTED: frozenset[UpgradeStatus] = frozenset({"resumes", "differs", "refused", "unsupported", "not-applicable"})

CrashStatus: TypeAlias = Literal["continues", "refused", "unclear", "violates", "broken"]
"""An outcome in the words of a file of crashes. There, an error that says what is wrong is ``refused`` whenever it comes."""
OF_A_CRASH: Mapping[Outcome, CrashStatus] = {
    "resumed": "continues",
    "refused": "refused",
    "fails later": "refused",
    "unclear": "unclear",
    "other rows": "violates",
    "no answer": "broken",
}
CRASHES: Mapping[CrashStatus, Mark] = {
    status: OUTCOMES[outcome] for outcome, status in OF_A_CRASH.items() if outcome != "fails later"
}

_WORST_FIRST: tuple[Outcome, ...] = ("refused", "unclear", "fails later", "other rows", "no answer", "resumed")

_PHRASES: Mapping[Outcome, str] = {
    "resumed": "the checkpoint resumes{on}",
    "refused": "the checkpoint is refused{on}",
    "fails later": "the checkpoint resumes{on}, then the query fails",
    "unclear": "the query fails{on} with an error that does not say what is wrong",
    "other rows": "the checkpoint resumes{on} with other rows",
    "no answer": "no answer about the checkpoint{on}",
}
_MET: Mapping[Outcome, str] = {"fails later": "fails", "no answer": "unknown"}


def phrase(verdict: CheckpointVerdict, on: str = "") -> str:
    """``the checkpoint is refused on 4.3.0``. ``on``: the version that resumed it, if it is named."""
    if verdict.fails_anyway:
        return "the checkpoint resumes on neither version"
    return _PHRASES[verdict.outcome].format(on=f" on {on}" if on else "")


def statement(verdict: CheckpointVerdict, on: str, where: str = "", details: tuple[str, ...] = ()) -> Statement:
    """``⊘ the checkpoint is refused on 4.3.0, handed over before step 3: INCOMPATIBLE``. ``where``: what follows the version."""
    glyph = BUG.glyph if verdict.fails_anyway else OUTCOMES[verdict.outcome].glyph
    error = f": {verdict.error.title}" if verdict.error is not None else ""
    return Statement(kind(verdict), glyph, f"{phrase(verdict, on)}{where}{error}", details)


Kind: TypeAlias = Literal["violates", "broken", "bug", "conforms"]
"""The status of a cell that has the colour of a verdict where nothing but the same rows is right; worst first."""


def kind(verdict: CheckpointVerdict) -> Kind:
    """How a verdict is drawn where nothing but the same rows is right."""
    if verdict.outcome in ("resumed", "no answer"):
        return "conforms" if verdict.outcome == "resumed" else "broken"
    return "bug" if verdict.fails_anyway else "violates"


def severity(verdict: CheckpointVerdict) -> tuple[int, int]:
    """Returns the key to sort by, the worst first."""
    return get_args(Kind).index(kind(verdict)), _WORST_FIRST.index(verdict.outcome)


def met(verdict: CheckpointVerdict) -> str:
    """The verdict as the JSON of ``conformance check`` has it."""
    if verdict.fails_anyway:
        return "fails everywhere"
    if verdict.outcome == "unclear":
        return "refused" if verdict.batch is None else "fails"
    return _MET.get(verdict.outcome, verdict.outcome)


def exit_code(verdict: CheckpointVerdict) -> int:
    """What a verdict adds to the exit code where nothing but the same rows is right: 1 if a change of version breaks the query, 3
    without an answer."""
    return {"conforms": 0, "bug": 0, "violates": 1, "broken": 3}[kind(verdict)]


def of_upgrades(statuses: Iterable[UpgradeStatus]) -> int:
    """The exit code of an upgrade run: 0 if everything is as the cases say, 1 if something is not, 3 if that is unknown."""
    return combined(
        1 if status == "violates" else 0 if status in EXPECTED else 3
        for status in statuses
        if status != "not-applicable"
    )


def of_crashes(statuses: Iterable[CrashStatus]) -> int:
    """The exit code of crashes: 0 if no query emits other rows or loses some, 1 if one does, 3 without an answer."""
    return combined({"violates": 1, "broken": 3}.get(status, 0) for status in statuses)


def combined(codes: Iterable[int]) -> int:
    """The exit code of several answers: 1 if one is bad, else 2 or 3 if one has that, 0 if all are good; 3 without any."""
    each = set(codes)
    return next((code for code in (1, 2, 3, 0) if code in each), 3)
