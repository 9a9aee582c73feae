"""The answer about a query in one word and one line: the worst of all its parts, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.wording import counted
from conformance.own_job.sample_rows import RowsOfVersions
from conformance.own_job.statements import statements, summary
from conformance.own_job.verdict import JobVerdict, Stress
from reports.results.checkpoint_status import exit_code
from reports.results.status import Statement

Answer: TypeAlias = Literal["same", "differs", "refused", "lost", "fails", "unknown"]
"""In turn: nothing that was tried changes; rows, columns, or what the program asks Spark for; what becomes of a checkpoint; rows are
lost, on both versions alike; the job itself fails; no answer. The names of the JSON document."""

_TICKET = re.compile(r"SPARK-\d+")


@dataclass(frozen=True)
class Conclusion:
    answer: Answer
    line: str
    """``3.5.9 → 4.3.0: same rows; the checkpoint is refused on 4.3.0 (SPARK-57003). Start it once with spark…=false: tried, same rows.``"""


def conclude(
    verdict: JobVerdict,
    stresses: Sequence[Stress],
    rows: RowsOfVersions,
    reasons: Sequence[str],
    code: int,
    not_tried: Sequence[str],
) -> Conclusion:
    """Conclude from all parts of an answer.

    Args:
        reasons: why the rows of the two versions may differ, by what is published about them.
        code: the exit code, with which the conclusion agrees.
        not_tried: what was not tried, of which the line says how much there is.
    """
    failing = [stress for stress in stresses if stress.verdict.exit_code == 1 and not stress.fails_before]
    answer = _answer(verdict, failing, code)
    said = [summary(verdict)]
    said += [f"{stress.condition}: {summary(stress.verdict).partition(': ')[2]}" for stress in failing]
    said += ["rows of the sample are lost"] if rows.lost else []
    if not_tried and answer == "same":
        said.append(f"not tried: {counted(len(not_tried), 'thing')}, listed above")
    worst = next((stress.verdict for stress in failing), verdict) if verdict.exit_code != 1 else verdict
    what = " ".join(f"{sentence}." for sentence in _what_to_do(answer, worst, reasons))
    line = f"{'; '.join(said)}{_tickets(answer, worst)}"
    return Conclusion(answer, f"{line}. {what}" if what else line)


def not_tried(said: Iterable[Statement]) -> tuple[str, ...]:
    """Return what the statements say was not tried, with its details."""
    return tuple(
        " ".join([statement.text, "; ".join(statement.details)]).strip()
        for statement in said
        if statement.kind == "unsupported"
    )


def _answer(verdict: JobVerdict, failing: Sequence[Stress], code: int) -> Answer:
    if code != 1:
        return "fails" if code == 2 else "unknown" if code else "same"
    judged = [verdict, *(stress.verdict for stress in failing)]
    if any(each.answer == "differs" or each.columns or each.asked_otherwise for each in judged):
        return "differs"
    handed = any(exit_code(group.verdict) == 1 for each in judged for group in each.handoffs)
    return "refused" if handed else "lost"


def _tickets(answer: Answer, verdict: JobVerdict) -> str:
    """Return the tickets that the worst checkpoint's reasons name."""
    if answer != "refused":
        return ""
    said = (statement for statement in statements(verdict) if statement.kind == "violates")
    tickets = dict.fromkeys(ticket for line in said for text in line.details for ticket in _TICKET.findall(text))
    return f" ({', '.join(tickets)})" if tickets else ""


def _what_to_do(answer: Answer, verdict: JobVerdict, reasons: Sequence[str]) -> Iterator[str]:
    to = verdict.after.title
    if answer == "refused":
        group = verdict.handoffs[0]
        if group.workaround is not None:
            yield f"Start it on {to} with {group.workaround.setting}: tried, same rows"
        else:
            tried = "no setting that was tried helps" if group.tried else "no setting is known to help"
            yield f"Keep {verdict.before.title} for this checkpoint, or start {to} with a new one: {tried}"
    elif answer == "differs":
        yield reasons[0] if reasons else "The suite knows no reason: look at the first difference above"
    elif answer == "lost":
        yield "A longer delay of the watermark keeps late rows; --accept-lost if they may be lost"
    elif answer in ("fails", "unknown") and verdict.failures:
        target, why = verdict.failures[0]
        yield f"{target.title}: {why.splitlines()[0].rstrip('.')}"
