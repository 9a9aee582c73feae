"""What a verdict on a job says, statement by statement: for a terminal, for a page, and as one record for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance.checkpoints.awaiting import AwaitingChange, changes, reasons
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.own_job.verdict import Handoffs, JobVerdict, Known, KnownHere
from reports.analysis.change import MEANINGS, Change
from reports.results.checkpoint_status import met, phrase, statement
from reports.results.status import Statement

_MOST = 5
"""Known bugs and changes that are listed."""


def summary(found: JobVerdict) -> str:
    """One line: ``3.5.9 → 4.1.4: same rows; the checkpoint is refused``."""
    rows = {
        "same": "same rows",
        "differs": found.change.what if found.change is not None else "",
        "fails": "the job fails",
        "unknown": "no answer",
    }
    columns = ["other columns"] if found.columns else []
    worst = [phrase(group.verdict) for group in found.handoffs[:1]]
    return f"{found.before.title} → {found.after.title}: {'; '.join([rows[found.answer], *columns, *worst])}"


def statements(found: JobVerdict, about: Known | None) -> Iterator[Statement]:
    """What was found, the answer to the question first.

    Args:
        about: what is published about both versions; None if nothing is.
    """
    for target, why in found.failures:
        first, *more = why.splitlines()
        yield Statement("broken", "!", f"on {target.title}: {first}", tuple(more))
    yield from _rows(found)
    if found.columns:
        yield Statement("violates", "✗", "the query emits other columns", found.columns)
    for group in found.handoffs:
        yield _handoff(group, found)
    if found.not_shown:
        yield Statement("unsupported", "–", "not covered, because this sample never showed it:", found.not_shown)
    if about is not None and found.features:
        yield from _known(found, about)


def _rows(found: JobVerdict) -> Iterator[Statement]:
    if found.answer == "same":
        seen = found.cells[0].observation
        count = sum(len(step.batches) for step in seen.steps) if seen is not None else 0
        batches = "1 micro-batch" if count == 1 else f"{count} micro-batches"
        late = ", late rows" if found.late_rows else ""
        yield Statement("conforms", "●", f"same rows, watermarks{late} and state in {batches}")
    if found.change is not None:
        meaning = MEANINGS[found.change.meaning]
        first = f"first difference: {found.change.where}"
        yield Statement("violates", meaning.glyph, f"{meaning.title}: {found.change.what}", (first,))


def _handoff(group: Handoffs, found: JobVerdict) -> Statement:
    steps = f", handed over before {'step' if len(group.steps) == 1 else 'steps'} {', '.join(map(str, group.steps))}"
    verdict = group.verdict
    details: tuple[str, ...] = ()
    if verdict.outcome == "other rows":
        details = (f"first difference from a restart on {found.before.title}: {verdict.difference}",)
    elif verdict.outcome != "resumed":
        details = (*why(verdict, changes(), found.to), *map(str, group.tried))
    return statement(verdict, found.after.title, steps, details)


def why(verdict: CheckpointVerdict, among: Iterable[AwaitingChange], to: SparkVersion) -> tuple[str, ...]:
    """Why a checkpoint did not resume on a version: the author's own code, else what the error shows, else what it says.

    Args:
        among: the documented reasons.
    """
    error = verdict.error
    if error is not None and error.own_code is not None:
        return error.own_code.evidence()
    shown = reasons(error, among, to) if error is not None else ()
    return shown or tuple(verdict.reason.splitlines() or ([verdict.why] if verdict.why else []))


def _known(found: JobVerdict, about: Known) -> Iterator[Statement]:
    uses = ", ".join(found.features)
    between = f"between {about.before.title} and {about.after.title}"
    if about.bugs:
        text = f"{counted(len(about.bugs), 'known bug')} that a query with {uses} can meet"
        yield Statement("bug", "▲", text, tuple(line for bug in about.bugs[:_MOST] for line in _bug(bug)))
    if about.changes:
        text = f"{counted(len(about.changes), 'change')} {between} that a query with {uses} can meet"
        yield Statement("differs", "◆", text, tuple(map(_change, about.changes[:_MOST])))
    if not about.bugs and not about.changes:
        yield Statement(
            "conforms", "●", f"the suite knows no bug or change {between} that a query with {uses} can meet"
        )


def _change(found: Change) -> str:
    """``3 rows later: the delay counts once (SPARK-49829). See join-delays/…``"""
    why = "; ".join(f"{reason.text}{reason.ticket}" for reason in found.reasons)
    return f"{found.what}{f': {why}' if why else ''}. See {found.case}"


def _bug(found: KnownHere) -> Iterator[str]:
    yield f"{' and '.join(found.spark)}: {found.because}{found.bug.ticket}; {found.bug}. See {found.cases[0]}"
    if found.bug.workaround is not None:
        yield f"workaround: {found.bug.workaround}"


def record(found: JobVerdict, about: Known | None) -> dict[str, Any]:
    """Everything that the statements say, as JSON."""
    change = found.change
    return {
        "from": found.before.spark,
        "to": found.after.spark,
        "summary": summary(found),
        "rows": found.answer,
        "change": None
        if change is None
        else {"meaning": change.meaning, "what": change.what, "first_difference": str(change.where)},
        "columns": list(found.columns),
        "not_covered": list(found.not_shown),
        "failures": [{"spark": target.spark, "why": why} for target, why in found.failures],
        "checkpoints": [_checkpoint(group, found.to) for group in found.handoffs],
        "features": list(found.features),
        "known_bugs": [
            {
                "spark": list(bug.spark),
                "because": bug.because,
                "link": bug.bug.link,
                "workaround": str(bug.bug.workaround) if bug.bug.workaround else None,
                "cases": list(bug.cases),
            }
            for bug in (about.bugs if about is not None else ())
        ],
        "known_changes": [
            {"case": one.case, "what": one.what, "links": [reason.link for reason in one.reasons if reason.link]}
            for one in (about.changes if about is not None else ())
        ],
        "case": str(found.case.path),
    }


def _checkpoint(group: Handoffs, to: SparkVersion) -> dict[str, Any]:
    verdict = group.verdict
    return {
        "met": met(verdict),
        "before_steps": list(group.steps),
        "error": verdict.error.name if verdict.error is not None else None,
        "because": list(reasons(verdict.error, changes(), to)) if verdict.error is not None else [],
        "workaround": group.workaround.setting if group.workaround is not None else None,
        "tried": [
            {"setting": tried.setting, "outcomes": [each.outcome for each in tried.verdicts]} for tried in group.tried
        ],
        "first_difference": verdict.difference or None,
        "lacking": verdict.reason or None,
    }
