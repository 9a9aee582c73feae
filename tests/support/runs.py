"""Small runs, and the files they leave."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.verdict import Status, Verdict, judge, no_answer
from reports.results.records import RECORD, Cell, Header, TargetRecord, cells_digest
from reports.results.writing import ResultsWriter
from tests.support.observations import batch, case, change, differs, expect, failed, observed, step, window

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FINISHED = datetime(2026, 1, 2, 3, 14, 5, tzinfo=UTC)


def case_named(id: str) -> Case:
    return case(expect(rows=[["12:00", "12:10", 1]]), id=id)


def cell(id: str, target: str, status: Status = "conforms") -> Cell:
    """A cell of this status, with all that goes with it."""
    of = case_named(id)
    version = SparkVersion.parse(target.removeprefix("spark-"))
    right, wrong = window("12:00", "12:10", 1), window("12:00", "12:10", 2)
    seen = observed(step(1, batch(0, wrong if status == "violates" else right))).model_copy(update={"case": id})
    verdict: Verdict
    match status:
        case "broken":
            return Cell.of(of, target, no_answer(of, version, "broken", "the engine did not answer within 60 s"))
        case "not-run":
            return Cell.of(of, target, no_answer(of, version, "not-run", "stopped"))
        case "not-applicable":
            return Cell.of(of, target, judge(of.model_copy(update={"spark": VersionRange.parse(">=9")}), version, seen))
        case "flaky":
            verdict = Verdict(id, version, status)
        case "differs":
            entry = differs(">0", because="it was so", link="SPARK-1", steps={1: change(state=1)})
            verdict = judge(of.model_copy(update={"differs": (entry,)}), version, seen)
        case "bug":
            entry = differs(">0", because="rows are lost", link="SPARK-2", bug=True, steps={1: change(state=1)})
            verdict = judge(of.model_copy(update={"differs": (entry,)}), version, seen)
        case "unsupported":
            entry = differs(">0", unsupported="not there yet")
            seen = observed(failed(1, "AttributeError", stage="analysis")).model_copy(update={"case": id})
            verdict = judge(of.model_copy(update={"differs": (entry,)}), version, seen)
        case _:
            verdict = judge(of, version, seen)
    assert verdict.status == status
    return Cell.of(of, target, verdict, [seen], 12)


def header(cases: tuple[str, ...], targets: tuple[str, ...], suite: str = "5" * 64) -> Header:
    return Header(
        suite=suite,
        cases=cases,
        targets=tuple(TargetRecord(name=name, spark=name.removeprefix("spark-")) for name in targets),
        started=STARTED,
        command="conformance run",
    )


def forged(lines: list[dict[str, Any]]) -> str:
    """The lines of a results file with the digests that a forger would compute."""
    cells = []
    for line in lines:
        if line["record"] == "cell":
            if line["observation"] is not None and line["behaviour"] is not None:
                line["behaviour"] = Observation.model_validate(line["observation"]).behaviour_digest
            cells.append(RECORD.validate_python(line))
    lines[-1]["digest"] = cells_digest(cell for cell in cells if isinstance(cell, Cell))
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def written(
    path: Path,
    cases: tuple[str, ...] = ("late/a", "late/b"),
    targets: tuple[str, ...] = ("spark-3.5.9", "spark-4.3.0"),
    statuses: Mapping[tuple[str, str], Status] | None = None,
    suite: str = "5" * 64,
) -> Path:
    """A complete file; cells conform where nothing else is said."""
    with ResultsWriter(path, header(cases, targets, suite)) as writer:
        for id in cases:
            for target in targets:
                writer.write(cell(id, target, (statuses or {}).get((id, target), "conforms")))
        writer.finish(FINISHED)
    return path
