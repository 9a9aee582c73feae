"""Answers of engines to one case, small enough to vary by hand, and results made of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.core.case import Differs
from conformance.core.observation import Observation, StepSeen
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.verdict import AS_THE_CASE_SAYS, judge, no_answer, not_applicable
from reports.results.reading import Results
from reports.results.records import Cell, DocumentedDifference, TargetRecord
from reports.results.writing import ResultsWriter
from tests.support.observations import batch, case, differs, expect, failed, observed, step, window
from tests.support.runs import FINISHED, header

CASE = "late/a"
FIRST, SECOND = window("12:00", "12:10", 1), window("12:10", "12:20", 2)


def seen(*steps: StepSeen) -> Observation:
    return observed(*steps).model_copy(update={"case": CASE})


CALM = seen(step(1, batch(0, FIRST), batch(1, SECOND, kind="no-data")))
"""Both rows, the second in a no-data batch."""

LOST = seen(step(1, batch(0, FIRST), batch(1, kind="no-data", dropped=1)))
HELD = seen(step(1, batch(0, FIRST), batch(1, kind="no-data", state=(2,))))
EARLIER = seen(step(1, batch(0, FIRST, SECOND), batch(1, kind="no-data")))
OTHER = seen(step(1, batch(0, FIRST), batch(1, window("12:10", "12:20", 3), kind="no-data")))
FULLER = seen(step(1, batch(0, FIRST), batch(1, SECOND, kind="no-data", state=(7,))))
UNCOUNTED = seen(step(1, batch(0, FIRST, dropped=None), batch(1, SECOND, kind="no-data", dropped=None)))
REFUSED = seen(failed(1, "AnalysisException", stage="start", message="no"))
REFUSED_OTHERWISE = seen(failed(1, "ParseException", stage="start", message="no"))
FAILED = seen(failed(1, "SparkException", stage="run", message="boom"))
FAILED_OTHERWISE = seen(failed(1, "SparkRuntimeException", stage="run", message="boom"))
FAILED_LATER = seen(step(1, batch(0, FIRST), error=FAILED.steps[0].error))
FAILED_LATER_OTHERWISE = seen(step(1, batch(0, FIRST), error=FAILED_OTHERWISE.steps[0].error))
FAILED_LATER_FULLER = seen(step(1, batch(0, FIRST, state=(7,)), error=FAILED_OTHERWISE.steps[0].error))
ONLY_FIRST = {1: {"rows": [["12:00", "12:10", 1]]}}
"""What an entry says of a version that answers ``LOST``."""
BROKEN, NOT_RUN, OUTSIDE = "broken", "not run", "outside"


def cell(id: str, target: str, answer: Observation | str, entries: tuple[Differs, ...] = ()) -> Cell:
    """What was recorded where this was answered. The case expects ``CALM``, or what one of its entries says."""
    of = case(expect(rows=[["12:00", "12:10", 1], ["12:10", "12:20", 2]]), id=id, differs=entries)
    version = SparkVersion.parse(target.removeprefix("spark-"))
    if answer == BROKEN:
        return Cell.of(of, target, no_answer(of, version, "broken", "the engine did not answer"))
    if answer == NOT_RUN:
        return Cell.of(of, target, no_answer(of, version, "not-run", "stopped"))
    if answer == OUTSIDE:
        verdict = not_applicable(of.model_copy(update={"spark": VersionRange.parse(">9")}), version)
        assert verdict is not None
        return Cell.of(of, target, verdict)
    assert isinstance(answer, Observation)
    found = answer.model_copy(update={"case": id})
    return Cell.of(of, target, judge(of, version, found), [found], 12)


def bug(spark: str | list[str], **keys: Any) -> Differs:
    """An entry for a known bug of versions that answer ``LOST``."""
    return differs(spark, **{"because": "it is lost", "link": "SPARK-2", "bug": True, "steps": ONLY_FIRST, **keys})


ENTRY = DocumentedDifference(spark="", because="another schema", link="SPARK-9")


def handoff_cell(
    id: str, met: str = "resumed", origin: str = "spark-3.5.9", target: str = "spark-4.3.0", **keys: Any
) -> Cell:
    """A cell whose checkpoint another target resumed.

    ``met``: what the query did with it, as the case says or else as ``ENTRY`` documents, or the status of another cell.
    """
    entry, status, outcome = None, met, met
    if met in ("refused", "other rows", "fails later", "unsupported"):
        entry = ENTRY
        status, outcome = (met, "refused") if met == "unsupported" else ("differs", met)
    elif met == "resumed":
        status = "conforms"
    else:
        outcome = {"violates": "other rows", "not-applicable": None}.get(met, "no answer")
    about = {"case": id, "family": "f", "case_digest": "0", "origin": origin, "target": target, "cut": 2}
    behaviour = "0" * 64 if status in AS_THE_CASE_SAYS else None
    return Cell(**{**about, "status": status, "outcome": outcome, "differs": entry, "behaviour": behaviour, **keys})


def results(
    path: Path,
    answers: Mapping[str, Mapping[str, Observation | str]],
    entries: Mapping[str, tuple[Differs, ...]] | None = None,
) -> Results:
    """Results of these answers: case id → version → answer."""
    versions = tuple(dict.fromkeys(version for by_version in answers.values() for version in by_version))
    about = header(tuple(answers), tuple(f"spark-{version}" for version in versions))
    with ResultsWriter(path, about) as writer:
        for version in versions:
            writer.introduce(TargetRecord(name=f"spark-{version}", spark=version, java="17", python="3.11"))
        for id, by_version in answers.items():
            for version in versions:
                of_case = (entries or {}).get(id, ())
                writer.write(cell(id, f"spark-{version}", by_version.get(version, CALM), of_case))
        writer.finish(FINISHED)
    return Results.read(path)
