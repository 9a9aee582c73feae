"""The answer about a query in one word and one line: the worst of all its parts, why, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.core.wording import counted
from conformance.judging.comparison import BehaviourChange
from conformance.own_job.resumption import Resumption
from conformance.own_job.resumption import statements as of_checkpoint
from conformance.own_job.sample_rows import RowsOfVersions
from conformance.own_job.statements import statements, stress_statement, summary
from conformance.own_job.verdict import JobVerdict, Stress
from reports.results.checkpoint_status import exit_code, phrase
from reports.results.status import Statement

Answer: TypeAlias = Literal["same", "differs", "refused", "lost", "fails", "unknown"]
"""In turn: nothing that was tried changes; rows, columns, or what the program asks Spark for; what becomes of a checkpoint; rows are
lost, on both versions alike; the job itself fails; no answer. The names of the JSON document."""

Reasons: TypeAlias = Callable[[BehaviourChange], Sequence[str]]

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
    reasons: Reasons,
    code: int,
    not_tried: Sequence[str],
    checkpoint: Resumption | None = None,
    by_runner: Sequence[Statement] = (),
) -> Conclusion:
    """Conclude from all parts of an answer.

    Args:
        reasons: why the two versions may differ as they do, by what is published about them.
        code: the exit code, with which the conclusion agrees.
        not_tried: what was not tried, of which the line says how much there is.
        checkpoint: what the later version did with the user's own.
        by_runner: what Spark's runner of pipelines does otherwise on the later version.
    """
    said_of = [(stress, stress_statement(stress, verdict)) for stress in stresses]
    worse = [(stress, said) for stress, said in said_of if said.kind == "violates"]
    refused = checkpoint if checkpoint is not None and checkpoint.exit_code == 1 else None
    answer = _answer([verdict, *(stress.verdict for stress, _ in worse)], code, refused)
    answer = "differs" if by_runner and answer == "lost" and not rows.lost else answer
    by_condition = verdict.exit_code != 1 and bool(worse)
    worst = worse[0][0].verdict if by_condition else verdict
    of_worst = worse[0][1].details if by_condition else _details(statements(verdict))
    of_own = _details(of_checkpoint(refused)) if refused is not None else ()
    changed = [summary(verdict), *(said.text for _, said in worse)]
    if answer != "same":
        changed[int(by_condition)] += _tickets(of_worst)
    parts = [*changed, *(said.text for said in by_runner)]
    if checkpoint is not None:
        parts.append(f"{checkpoint.checkpoint.where}: {phrase(checkpoint.verdict)}{_tickets(of_own)}")
    parts += ["rows of the sample are lost"] if rows.lost else []
    parts += [said.text for stress, said in said_of if stress.only_warns and said.kind == "bug"]
    if not_tried and answer == "same":
        parts.append(f"not tried: {counted(len(not_tried), 'thing')}, listed below")
    details = (*of_worst, *of_own)
    advice = [rows.advice] if answer == "lost" else _what_to_do(answer, worst, details, reasons, refused)
    what = " ".join(f"{sentence.rstrip('.')}." for sentence in advice)
    line = "; ".join(parts)
    return Conclusion(answer, f"{line}. {what}" if what else line)


def _details(said: Iterable[Statement]) -> tuple[str, ...]:
    return tuple(line for statement in said for line in statement.details)


def _tickets(details: Iterable[str]) -> str:
    """Return the tickets that the details of a part name, which follow it: `` (SPARK-57003)``; empty without one."""
    tickets = dict.fromkeys(ticket for line in details for ticket in _TICKET.findall(line))
    return f" ({', '.join(tickets)})" if tickets else ""


def not_tried(said: Iterable[Statement]) -> tuple[str, ...]:
    """Return what the statements say was not tried, with its details."""
    return tuple(
        " ".join([statement.text, "; ".join(statement.details)]).strip()
        for statement in said
        if statement.kind == "unsupported"
    )


def _answer(judged: Sequence[JobVerdict], code: int, refused: Resumption | None) -> Answer:
    if code != 1:
        return "fails" if code == 2 else "unknown" if code else "same"
    if any(each.answer == "differs" or each.columns or each.asked_otherwise for each in judged):
        return "differs"
    handed = any(exit_code(group.verdict) == 1 for each in judged for group in each.handoffs)
    return "refused" if handed or refused is not None else "lost"


def _what_to_do(
    answer: Answer, verdict: JobVerdict, details: Sequence[str], reasons: Reasons, refused: Resumption | None
) -> Iterator[str]:
    to, workarounds = verdict.after.title, [f"W{line[1:]}" for line in details if line.startswith("workaround: ")]
    failed = [f"{target.title}: {why.splitlines()[0]}" for target, why in verdict.failures[:1]]
    if answer == "refused":
        proven = next((group.workaround.setting for group in verdict.handoffs if group.workaround is not None), None)
        setting = refused.workaround if refused is not None else proven
        if setting is not None:
            yield f"Start it on {to} with {setting}: tried, {'same rows' if setting == proven else 'it resumes'}"
        else:
            yield f"Keep {verdict.before.title} for this checkpoint, or start {to} with a new one: no setting is proven to help"
    elif answer == "differs" and verdict.breaks_code:
        yield f"Change it so that it runs on {to}, too"
    elif answer == "differs" and verdict.caused_by:
        yield f"Caused by {verdict.caused_by}"
    elif answer == "differs":
        by_order = [
            f"Perhaps by {call}: its result depends on the order of rows, which Spark does not promise"
            for call in verdict.by_order
        ]
        published = reasons(verdict.change) if verdict.change is not None else ()
        yield from (
            workarounds[:1]
            or published[:1]
            or by_order[:1]
            or failed
            or ["The suite knows no reason: look at the first difference below"]
        )
    elif answer in ("fails", "unknown"):
        yield from failed
