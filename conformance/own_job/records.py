"""The verdict on a job as JSON, and as a results file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.checkpoints.awaiting import changes, reasons
from conformance.core.data import Json
from conformance.core.versions import SparkVersion
from conformance.own_job.statements import summary
from conformance.own_job.verdict import Handoffs, JobVerdict
from conformance.runner.cases import cell_record
from reports.results.records import Header
from reports.results.writing import ResultsWriter

NOTHING_KNOWN: Mapping[str, Json] = {"known_bugs": [], "known_changes": []}


def write_results(verdict: JobVerdict, path: Path, command: str) -> None:
    """Write a results file, for ``conformance report``, ``export`` and ``diff``; see `conformance.core.output_file` for errors."""
    case, targets = verdict.case, (verdict.before, verdict.after)
    header = Header(suite=case.digest, cases=(case.id,), targets=targets, started=verdict.started, command=command)
    with ResultsWriter(path, header) as writer:
        for whole in verdict.wholes:
            writer.write(cell_record(whole.task, whole.verdict, whole.run))


def record(verdict: JobVerdict, known: Mapping[str, Json] = NOTHING_KNOWN) -> dict[str, Json]:
    """Record a verdict as JSON; ``known``: what is published about both versions."""
    change = verdict.change
    return {
        "from": verdict.before.spark,
        "to": verdict.after.spark,
        "summary": summary(verdict),
        "rows": verdict.answer,
        "change": None
        if change is None
        else {
            "meaning": change.meaning,
            "what": change.what,
            "first_difference": str(change.where),
            "ansi": verdict.needs_ansi_off,
            "other_default": verdict.other_default or None,
        },
        "columns": list(verdict.columns),
        "asked_otherwise": list(verdict.asked_otherwise),
        "not_covered": list(verdict.not_shown),
        "not_fixed": list(verdict.not_fixed),
        "left_out": list(verdict.left_out),
        "reordered": list(verdict.reordered),
        "by_order": list(verdict.by_order),
        "failures": [{"spark": target.spark, "why": why} for target, why in verdict.failures],
        "checkpoints": [_checkpoint(group, verdict.to) for group in verdict.handoffs],
        "without_handoff": list(verdict.without_handoff),
        "digests": verdict.digests,
        "features": list(verdict.features),
        "planned_by": verdict.planned_by.spark if verdict.planned_by is not None else None,
        **known,
        "case": str(verdict.case.path),
    }


def _checkpoint(group: Handoffs, to: SparkVersion) -> dict[str, Json]:
    verdict = group.verdict
    return {
        "outcome": verdict.outcome,
        "fails_anyway": verdict.fails_anyway,
        "before_steps": list(group.steps),
        "error": verdict.error.name if verdict.error is not None else None,
        "because": list(reasons(verdict.error, changes(), to)) if verdict.error is not None else [],
        "workaround": group.workaround.setting if group.workaround is not None else None,
        "tried": [
            {
                "setting": tried.setting,
                "outcomes": [verdict.outcome for verdict in tried.verdicts],
                "proven": tried.proven,
            }
            for tried in group.tried
        ],
        "first_difference": verdict.difference or None,
        "lacking": verdict.reason or None,
    }
