"""The clauses of statements: the named step of the named case fails if what it shows there is otherwise."""

import json
from dataclasses import replace
from functools import cache

from conformance.core.observation import BatchSeen, ErrorSeen, Observation
from conformance.core.versions import VersionRange, releases
from conformance.judging.checkpoint_verdict import cuts
from conformance.judging.verdict import judge, not_applicable
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import comparable, predict
from reports.analysis.specification import Clause
from reports.results.compression import open_results
from reports.results.published import BASELINES
from tests.support.published import published_report
from tests.support.whole_suite import whole_suite
from tools.judge_again import needs_progress

CASES = {case.id: case for case in whole_suite().cases}
(CATALOGUE,) = whole_suite().catalogues.values()
MADE_UP = {
    **dict.fromkeys(BatchSeen.model_fields),
    **dict.fromkeys(("id", "logged", "duration_ms"), 99),
    **dict.fromkeys(("sources", "state", "rows"), ()),
    "kind": "data",
    "progress": {},
}
ENTRIES = {**CATALOGUE.behaviours, **CATALOGUE.questions}
CLAUSES = [(id, clause) for id, entry in ENTRIES.items() for clause in entry.get("clauses", ())]


def version_of(id, clause, case):
    """The newest release that the clause is about and the case applies to, if possible without a known bug."""
    about = [ENTRIES[id].get("versions", "all"), clause.get("versions", "all"), clause.get("differs", "all")]
    ranges = [VersionRange.parse(text) for text in about if text != "all"]
    shown = [one for one in releases() if all(one in each for each in ranges) and not_applicable(case, one) is None]
    return max(shown, key=lambda one: ((entry := case.differs_on(one)) is None or entry.bug is None, one))


@cache
def published():
    """Case and target → the published answer, as JSON."""
    with open_results(BASELINES / "lines.jsonl.xz") as lines:
        cells = [json.loads(line) for line in lines if line.startswith(b'{"record":"cell"')]
    return {(cell["case"], cell["target"]): cell["observation"] for cell in cells}


@cache
def answered(id, version, shows):
    """What the model predicts, else what the version answered: the model has no plan."""
    if shows == "plan":
        return Observation.model_validate(published()[id, f"spark-{version}"])
    try:
        return predict(CASES[id], version).observation
    except Unpredictable:
        return Observation.model_validate(published()[id, f"spark-{version}"])


def findings_of(case, version, seen, shows):
    """Published answers have no progress, so what is expected of it is left out."""
    judged = judge(case if shows == "plan" else comparable(case), version, seen)
    return [one for one in judged.findings if not needs_progress(one)]


def moved(batches):
    """The same rows from another micro-batch; one more micro-batch if there are none to move."""
    if not batches:
        return (BatchSeen(**MADE_UP),)
    emitting = next((at for at, batch in enumerate(batches) if batch.rows), None)
    if emitting is None or len(batches) == 1:
        last = batches[-1]
        return (*batches, last.model_copy(update={"id": last.id + 1, "kind": "no-data", "rows": (), "dropped": 0}))
    other = emitting - 1 if emitting else 1
    rows = (*batches[other].rows, *batches[emitting].rows)
    changed = {emitting: (), other: rows}
    return tuple(
        batch.model_copy(update={"rows": changed[at]}) if at in changed else batch for at, batch in enumerate(batches)
    )


def with_other_rows(batches, width):
    """One row less; one more if there is none."""
    for at, batch in enumerate(batches):
        if batch.rows:
            return (*batches[:at], batch.model_copy(update={"rows": batch.rows[1:]}), *batches[at + 1 :])
    last = batches[-1] if batches else BatchSeen(**MADE_UP)
    return (*batches[:-1], last.model_copy(update={"rows": ((None,) * width,)}))


def with_one_more(batch, shows):
    """A micro-batch that counts one more than it did."""
    progress = batch.progress
    match shows:
        case "state":
            return batch.model_copy(update={"state": tuple(count + 1 for count in batch.state)})
        case "dropped":
            operators = [
                {**one, "numRowsDroppedByWatermark": one.get("numRowsDroppedByWatermark", 0) + 1}
                for one in progress.get("stateOperators", ())
            ]
            more = {**progress, "stateOperators": operators}
            return batch.model_copy(update={"dropped": batch.dropped + max(1, len(operators)), "progress": more})
        case "eventTime" if batch.event_time is None:
            return batch
        case "eventTime":
            later = {name: at + 1 for name, at in batch.event_time.model_dump().items()}
            return batch.model_copy(update={"event_time": batch.event_time.model_copy(update=later)})
        case "progress":
            return batch.model_copy(update={"progress": {name: other(value) for name, value in progress.items()}})


def other(value):
    """The value, with another number in each place that has one."""
    match value:
        case dict():
            return {name: other(one) for name, one in value.items()}
        case list() | tuple():
            return [other(one) for one in value]
        case int():
            return value + 1
    return value


def altered(observation, number, shows):
    """The answer, otherwise in what the step shows."""
    at = next(place for place, step in enumerate(observation.steps) if step.number == number)
    steps = list(observation.steps)
    step = steps[at]
    match shows:
        case "rows":
            changed = with_other_rows(step.batches, len(observation.columns_of(step)))
            steps[at] = step.model_copy(update={"batches": changed})
        case "batches":
            steps[at] = step.model_copy(update={"batches": moved(step.batches)})
        case "watermark":
            steps[at] = step.model_copy(update={"watermark": step.watermark + 1})
        case "plan":
            steps[at] = step.model_copy(update={"plan": "another plan"})
        case "error":
            stage = step.error.stage if step.error is not None else "run"
            error = ErrorSeen(stage=stage, classes=("OtherException",), message="for another reason")
            steps[at] = step.model_copy(update={"error": error})
        case _:
            last = max(place for place in range(at + 1) if steps[place].batches)
            changed = tuple(with_one_more(batch, shows) for batch in steps[last].batches)
            steps[last] = steps[last].model_copy(update={"batches": changed})
    return observation.model_copy(update={"steps": tuple(steps)})


def test_a_clause_is_of_the_sentence_and_its_step_fails_if_it_is_wrong():
    for id, clause in CLAUSES:
        said, shows = f"{id}: {clause['says']}", clause["shows"]
        text = ENTRIES[id].get("sentence") or ENTRIES[id]["answer"]
        assert " ".join(clause["says"].split()) in " ".join(text.split()), said
        case = CASES[clause["case"]]
        if shows == "checkpoint":
            assert int(clause["step"]) in cuts(case), said
            continue
        version = version_of(id, clause, case)
        seen = answered(case.id, version, shows if shows == "plan" else "")
        assert findings_of(case, version, seen, shows) == [], said
        wrong = findings_of(case, version, altered(seen, int(clause["step"]), shows), shows)
        assert int(clause["step"]) in {finding.place.step for finding in wrong}, said


def test_published_checkpoints_show_the_clauses_about_them():
    report = published_report()
    clauses = [one for entry in ENTRIES.values() for one in Clause.all_of(report, entry) if one.shows == "checkpoint"]
    assert clauses
    for clause in clauses:
        newest = max((one for one in report.versions if one.version in clause.versions), key=lambda one: one.version)
        assert clause.on(report, newest)[0] == "holds", clause.says
        differs = newest.version not in clause.differs if clause.differs is not None else True
        opposite = replace(clause, differs=clause.versions if differs else None)
        assert opposite.on(report, newest)[0] in ("differs", "bug"), clause.says


def test_the_other_statements_say_why_no_case_shows_them():
    entries = [CATALOGUE.behaviours[id] for id in CATALOGUE.reachable_behaviours()]
    assert [entry["number"] for entry in entries if not entry.get("clauses") and not entry.get("reason")] == []
    assert [entry["number"] for entry in entries if entry.get("reason")] == ["12.6"]
