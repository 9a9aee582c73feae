"""What the verdict on a job says, as lines for a terminal and a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from conformance.checkpoints.awaiting import AwaitingChange, reasons
from conformance.checkpoints.awaiting import changes as awaiting_changes
from conformance.core.versions import SparkVersion
from conformance.core.wording import counted
from conformance.judging.checkpoint_verdict import CheckpointVerdict
from conformance.judging.comparison import MEANINGS
from conformance.own_job.verdict import Handoffs, JobVerdict, Stress
from reports.results.checkpoint_status import OUTCOMES, phrase, statement
from reports.results.status import MARKS, Statement

NOT_FIXED = "the sample does not fix this; it did the same in two runs, which proves nothing of others:"


def summary(verdict: JobVerdict) -> str:
    """One line: ``3.5.9 → 4.1.4: same rows; the checkpoint is refused``."""
    less = f", less state on {verdict.after.title}" if verdict.change is not None else ""
    less += f", but for the order inside {', '.join(verdict.reordered)}" if verdict.reordered else ""
    rows = {
        "same": f"same {'digests of ' if verdict.digests else ''}rows{less}",
        "differs": verdict.change.what if verdict.change is not None else "",
        "fails": f"the job fails on {' and '.join(target.title for target, _ in verdict.failures)}",
        "unknown": "no answer",
    }
    columns = ["other columns"] if verdict.columns else []
    columns += ["the program asks for something else"] if verdict.asked_otherwise else []
    worst = [phrase(group.verdict) for group in verdict.handoffs[:1]]
    return f"{verdict.before.title} → {verdict.after.title}: {'; '.join([rows[verdict.answer], *columns, *worst])}"


def stress_statement(stress: Stress, sample: JobVerdict) -> Statement:
    """Say what a stress shows beside the answer for the sample as it is."""
    verdict = stress.verdict
    text = f"{stress.condition}: {summary(verdict).partition(': ')[2]}"
    if verdict.exit_code == 0:
        return Statement("conforms", "●", f"also {text}")
    if _changes(verdict) <= _changes(sample):
        return Statement("conforms", "●", f"{stress.condition}: no other change")
    if stress.only_warns:
        return Statement("bug", "▲", warning(stress), (f"caused by {verdict.caused_by}",))
    shown = set(_details(sample))
    lines = tuple(line for line in _details(verdict) if line not in shown)
    other_rows = verdict.change is not None or any(group.verdict.outcome == "other rows" for group in verdict.handoffs)
    if stress.name == "other_partitions" and other_rows:
        known = (change for change in awaiting_changes() if "strict_distribution" in change.when)
        for change in (change for change in known if verdict.to in change.to):
            lines = (*lines, change.reason, f"workaround: {change.workaround}")
    if stress.fails_before:
        note = f"{verdict.before.title} itself fails there, so the upgrade does not change this"
        return Statement("bug", "▲", text, (note, *lines))
    return Statement("violates", "✗", text, lines)


def warning(stress: Stress) -> str:
    """Return what rows that the sample does not have would do on the later version."""
    verdict = stress.verdict
    what = verdict.change.what if verdict.change is not None else ""
    return f"{stress.condition}, which this sample does not have, {verdict.after.title} {what}"


def _changes(verdict: JobVerdict) -> set[tuple[str, str]]:
    """Name what changes, however often: the rows, the columns, and what became of checkpoints."""
    rows = {
        (verdict.answer, verdict.change.what if verdict.change is not None else ""),
        *(("columns", column) for column in verdict.columns),
    }
    rows.discard(("same", ""))
    errors = ((group.verdict, group.verdict.error) for group in verdict.handoffs if group.verdict.outcome != "resumed")
    return rows | {(phrase(handoff), error.title if error is not None else handoff.reason) for handoff, error in errors}


def _details(verdict: JobVerdict) -> Iterator[str]:
    for line in (*_rows(verdict), *(_handoff(group, verdict) for group in verdict.handoffs)):
        yield f"{line.glyph} {line.text}"
        yield from line.details


_SORTS = re.compile(r"\bSort \[.*\], true$", re.MULTILINE)
"""A sort of all rows, as a logical plan shows it."""


def statements(verdict: JobVerdict) -> Iterator[Statement]:
    """Yield what the verdict says, the answer to the question first."""
    for target, why in verdict.failures:
        first, *more = why.splitlines()
        yield Statement("broken", "!", f"on {target.title}: {first}", tuple(more))
    yield from _rows(verdict)
    if verdict.columns:
        yield Statement("violates", "✗", "the query emits other columns", verdict.columns)
    if verdict.asked_otherwise:
        what = f"the program does not ask {verdict.after.title} for what it asks {verdict.before.title}"
        yield Statement("violates", "✗", what, verdict.asked_otherwise)
    yield from (_handoff(group, verdict) for group in verdict.handoffs)
    if verdict.without_handoff:
        why = "the sample has so many rows" if verdict.digests else "the other checkpoints did alike"
        text = f"not handed over before {_steps(verdict.without_handoff)}, since {why}"
        yield Statement("unsupported", "–", text)
    if verdict.answer == "same" and _SORTS.search(verdict.plan):
        yield Statement("unsupported", "–", "the order of the rows is not compared, though the query sorts them")
    if verdict.not_fixed and verdict.answer in ("same", "differs"):
        left_out = f"not compared, since the sample does not fix it: {', '.join(verdict.left_out)}"
        yield Statement("unsupported", "–", left_out if verdict.left_out else NOT_FIXED, verdict.not_fixed)
    if verdict.not_shown:
        yield Statement("unsupported", "–", "not covered, because this sample never showed it:", verdict.not_shown)


def _rows(verdict: JobVerdict) -> Iterator[Statement]:
    if verdict.answer == "same":
        seen = verdict.wholes[0].observation
        batches = seen.batches if seen is not None else ()
        late = ", late rows" if any(batch.dropped for batch in batches) else ""
        rows = "same number of rows and same digest of them" if verdict.digests else "same rows"
        compared = f"watermarks{late} and state" if verdict.change is None else f"and watermarks{late}"
        yield Statement(
            "conforms",
            "●",
            f"{rows}{', ' if verdict.change is None else ' '}{compared} in {counted(len(batches), 'micro-batch')}",
        )
    if verdict.reordered:
        columns = ", ".join(verdict.reordered)
        text = f"the order inside {columns} is another: collect_list and collect_set promise none; sort_array makes one"
        yield Statement("differs", MARKS["differs"].glyph, text)
    if verdict.change is not None and not verdict.breaks_code:  # whose error is among the failures
        meaning, where = MEANINGS[verdict.change.meaning], f"first difference: {verdict.change.where}"
        if verdict.answer == "same":
            text = f"{verdict.after.title} keeps fewer rows in state, which changes no result of this sample"
            yield Statement("differs", meaning.glyph, text, (where,))
            return
        details = (where, *([f"caused by {verdict.caused_by}"] if verdict.caused_by else []))
        yield Statement("violates", meaning.glyph, f"{meaning.title}: {verdict.change.what}", details)


def _handoff(group: Handoffs, job: JobVerdict) -> Statement:
    steps, verdict = f", handed over before {_steps(group.steps)}", group.verdict
    details: tuple[str, ...] = ()
    if verdict.outcome == "other rows":
        details = (f"first difference from a restart on {job.before.title}: {verdict.difference}",)
    elif verdict.outcome != "resumed":
        details = (*why(verdict, awaiting_changes(), job.to), *map(str, group.tried))
    return statement(verdict, job.after.title, steps, details)


def _steps(numbers: tuple[int, ...]) -> str:
    """``steps 2, 4–9``; two in a row are named."""
    by_start = groupby(enumerate(numbers), key=lambda placed: placed[1] - placed[0])
    runs = [[number for _, number in run] for _, run in by_start]
    texts = (f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return f"{'step' if len(numbers) == 1 else 'steps'} {', '.join(texts)}"


def why(verdict: CheckpointVerdict, among: Iterable[AwaitingChange], to: SparkVersion) -> tuple[str, ...]:
    """Say why a checkpoint did not resume: by the author's own code, else by documented reasons that the error shows, else by the error."""
    error = verdict.error
    if error is not None and error.own_code is not None:
        return error.own_code.evidence()
    shown = reasons(error, among, to) if error is not None else ()
    return shown or tuple(verdict.reason.splitlines() or ([verdict.why] if verdict.why else []))


def awaiting_statements(changes: Iterable[AwaitingChange]) -> Iterator[Statement]:
    """Yield what is known to await a checkpoint on another version."""
    for change in changes:
        when = ", if it is refused for this reason" if change.effect == "may be refused" else ""
        details = [f"workaround{when}: {change.workaround}"] if change.workaround else []
        details += [f"shown by the case {change.case}"] if change.case else []
        error = f" with {change.error}" if change.error else ""
        text = f"{change.effect}{error}: {change.reason}"
        match change.effect:
            case "refused":
                yield Statement("violates", OUTCOMES["refused"].glyph, text, tuple(details))
            case "may be refused":
                yield Statement("bug", MARKS["bug"].glyph, text, tuple(details))
            case "changes":
                yield Statement("differs", MARKS["differs"].glyph, text, tuple(details))
