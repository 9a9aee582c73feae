"""Answers of engines to one case, small enough to vary by hand, and results made of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformance.core.case import Differs
from conformance.core.observation import Observation, StepSeen
from conformance.core.versions import SparkVersion, VersionRange
from conformance.judging.verdict import broken, judge, not_applicable, not_run
from reports.results.reading import Results
from reports.results.records import Cell, Target
from reports.results.writing import ResultsWriter
from tests.support.observations import batch, case, expect, failed, observed, step, window
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
BROKEN, NOT_RUN, OUTSIDE = "broken", "not run", "outside"


def cell(id: str, target: str, answer: Observation | str, differs: tuple[Differs, ...] = ()) -> Cell:
    """What was recorded where this was answered. The case expects ``CALM``, or what an entry of ``differs`` says."""
    of = case(expect(rows=[["12:00", "12:10", 1], ["12:10", "12:20", 2]]), id=id, differs=differs)
    version = SparkVersion.parse(target.removeprefix("spark-"))
    if answer == BROKEN:
        return Cell.of(of, target, broken(of, version, "the engine did not answer"))
    if answer == NOT_RUN:
        return Cell.of(of, target, not_run(of, version, "stopped"))
    if answer == OUTSIDE:
        verdict = not_applicable(of.model_copy(update={"spark": VersionRange.parse(">9")}), version)
        assert verdict is not None
        return Cell.of(of, target, verdict)
    assert isinstance(answer, Observation)
    found = answer.model_copy(update={"case": id})
    return Cell.of(of, target, judge(of, version, found), [found], 12)


def results(
    path: Path,
    answers: Mapping[str, Mapping[str, Observation | str]],
    differs: Mapping[str, tuple[Differs, ...]] | None = None,
) -> Results:
    """Results of these answers: case id → version → answer."""
    versions = tuple(dict.fromkeys(version for by_version in answers.values() for version in by_version))
    about = header(tuple(answers), tuple(f"spark-{version}" for version in versions))
    with ResultsWriter(path, about) as writer:
        for version in versions:
            writer.introduce(Target(name=f"spark-{version}", spark=version, java="17", python="3.11"))
        for id, by_version in answers.items():
            for version in versions:
                entries = (differs or {}).get(id, ())
                writer.write(cell(id, f"spark-{version}", by_version.get(version, CALM), entries))
        writer.finish(FINISHED)
    return Results.read(path)
