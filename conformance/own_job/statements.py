"""What a verdict on a job says, statement by statement: for a terminal, for a page, and as one record for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from conformance.core.observation import ErrorSeen
from conformance.core.wording import counted
from conformance.own_job.handoffs import Handoffs
from conformance.own_job.known import Known, KnownHere
from conformance.own_job.verdict import JobVerdict
from reports.analysis.change import MEANINGS, Change

Kind: TypeAlias = Literal["conforms", "differs", "bug", "violates", "broken"]
"""As the status of a cell: what colours and signs a statement."""

_MOST = 5
"""Known bugs and changes that are listed."""


@dataclass(frozen=True)
class Statement:
    """One thing that was found."""

    kind: Kind
    glyph: str
    text: str
    details: tuple[str, ...] = ()


def summary(found: JobVerdict) -> str:
    """One line: ``3.5.9 → 4.1.4: same rows; the checkpoint is refused``."""
    rows = {
        "same": "same rows",
        "differs": found.change.what if found.change is not None else "",
        "fails": "the job fails",
        "unknown": "no answer",
    }
    words = {
        "refused": "the checkpoint is refused",
        "fails": "the checkpoint resumes, then the query fails",
        "other rows": "the checkpoint resumes with other rows",
        "unknown": "no answer about the checkpoint",
        "fails everywhere": "the checkpoint resumes on neither",
        "resumed": "the checkpoint resumes",
    }
    worst = [words[group.met] for group in found.handoffs[:1]]
    return f"{found.before.title} → {found.after.title}: {'; '.join([rows[found.answer], *worst])}"


def statements(found: JobVerdict, about: Known | None) -> Iterator[Statement]:
    """What was found, the answer to the question first.

    Args:
        about: what is published about both versions; None if nothing is.
    """
    for target, why in found.failures:
        first, *more = why.splitlines()
        yield Statement("broken", "!", f"on {target.title}: {first}", tuple(more))
    yield from _rows(found)
    for group in found.handoffs:
        yield _handoff(group, found, about)
    if about is not None and found.features:
        yield from _known(found, about)


def _rows(found: JobVerdict) -> Iterator[Statement]:
    if found.answer == "same":
        seen = found.cells[0].observation
        count = sum(len(step.batches) for step in seen.steps) if seen is not None else 0
        batches = "1 micro-batch" if count == 1 else f"{count} micro-batches"
        yield Statement("conforms", "●", f"same rows, watermarks, late rows and state in {batches}")
    if found.change is not None:
        meaning = MEANINGS[found.change.meaning]
        first = f"first difference: {found.change.where}"
        yield Statement("violates", meaning.glyph, f"{meaning.title}: {found.change.what}", (first,))


def _handoff(group: Handoffs, found: JobVerdict, about: Known | None) -> Statement:
    steps = f"handed over before {'step' if len(group.steps) == 1 else 'steps'} {', '.join(map(str, group.steps))}"
    one = group.shown
    match group.met:
        case "resumed":
            return Statement("conforms", "●", f"the checkpoint resumes on {found.after.title}, {steps}")
        case "other rows":
            first = f"first difference from a restart on {found.before.title}: {one.first}"
            return Statement("violates", "✗", f"the checkpoint resumes with other rows, {steps}", (first,))
        case "unknown":
            return Statement(
                "broken", "?", f"no answer about the checkpoint, {steps}", tuple((one.lacking or "").splitlines())
            )
    name = one.error.title if one.error is not None else "an error"
    details = tuple(_why(one.error, about)) if one.error is not None else ()
    match group.met:
        case "fails everywhere":
            return Statement("bug", "▲", f"the checkpoint resumes on neither version, {steps}: {name}", details)
        case "fails":
            text = f"the checkpoint resumes on {found.after.title}, then the query fails, {steps}: {name}"
            return Statement("violates", "✗", text, details)
    return Statement("violates", "⊘", f"the checkpoint is refused, {steps}: {name}", details)


def _why(error: ErrorSeen, about: Known | None) -> Iterator[str]:
    """What the cases document about the error or, if they document nothing, what it says."""
    if error.own_code is not None:
        yield from error.own_code.evidence()
        return
    documented = about.documented(error) if about is not None else None
    if documented is None:
        yield from error.message.strip().splitlines()[:1]
        return
    yield f"{documented.because}{documented.ticket}"
    if documented.way_round:
        yield f"workaround: {documented.way_round}"


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
        "failures": [{"spark": target.spark, "why": why} for target, why in found.failures],
        "checkpoints": [_checkpoint(group, about) for group in found.handoffs],
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


def _checkpoint(group: Handoffs, about: Known | None) -> dict[str, Any]:
    error = group.shown.error
    documented = about.documented(error) if about is not None else None
    return {
        "met": group.met,
        "before_steps": list(group.steps),
        "error": error.name if error is not None else None,
        "because": documented.because if documented is not None else None,
        "way_round": documented.way_round if documented is not None else None,
        "first_difference": str(group.shown.first) if group.shown.first is not None else None,
        "lacking": group.shown.lacking,
    }
