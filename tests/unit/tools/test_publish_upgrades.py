"""The published upgrades: judged by the cases of today, small, and open about what no run covers."""

from pathlib import Path

import pytest

from conformance.core.case import Case, ExpectedError, KafkaSource, Upgrade
from conformance.core.observation import Observation
from conformance.core.operations import read_pipeline
from conformance.core.versions import SparkVersion
from conformance.judging.checkpoint_verdict import CheckpointHandoff, VersionPair, judge_upgrade
from harness.targets.targets import Targets
from reports.results.errors import UnusableResults
from reports.results.reading import Results
from reports.results.records import Cell, Footer, Header, TargetRecord
from reports.results.writing import ResultsWriter
from tests.support.observations import batch, case, change, expect, failed, observed, step, window
from tests.support.runs import FINISHED, STARTED
from tools.judge_again import upgrade_again
from tools.publish_upgrades import Missing, missing, of_today, publish, slim, wanted_pairs

FOOTER = Footer(counts={}, finished=FINISHED)
PAIR = VersionPair(SparkVersion.parse("3.5.9"), SparkVersion.parse("4.3.0"))
NAMES = ("spark-3.5.9", "spark-4.3.0")
REFUSAL = Upgrade(because="another schema", link="SPARK-1", error=ExpectedError(classes=("Incompatible",), stage="run"))
QUERY = read_pipeline([{"from": "events"}, {"dropDuplicates": []}])
SEEN = observed(
    step(1, batch(0, window("12:00", "12:10", 1))), failed(2, "Incompatible", stage="run", message="/tmp/somebody")
)


def of(id: str, *upgrades: Upgrade) -> Case:
    return case(*(expect(rows=[["12:00", "12:10", 1]]) for _ in range(2)), id=id, upgrades=upgrades, query=QUERY)


def cell(of_case: Case) -> Cell:
    seen = SEEN.model_copy(update={"case": of_case.id})
    return judged(of_case, seen)


def judged(of_case: Case, seen: Observation) -> Cell:
    verdict = judge_upgrade(CheckpointHandoff(of_case, 2), PAIR, seen)
    return Cell.of(of_case, NAMES[1], verdict, [seen], origin=NAMES[0])


def again(seen: Cell, today: Case) -> Cell:
    found = upgrade_again(seen, today)
    assert found is not None
    return found


def header(*cells: Cell) -> Header:
    return Header(
        suite="5" * 64,
        cases=(),
        targets=tuple(TargetRecord(name=name, spark=name.removeprefix("spark-")) for name in NAMES),
        started=STARTED,
        pairs=(NAMES,),
        cuts={one.case: (one.cut,) for one in cells if one.cut is not None},
    )


def run(path: Path, *cells: Cell) -> Results:
    """The results of one run of ``conformance upgrade``."""
    with ResultsWriter(path, header(*cells)) as writer:
        for one in cells:
            writer.write(one)
        writer.finish(FINISHED)
    return Results.read(path)


def test_what_was_observed_is_left_out_and_the_verdict_remains(tmp_path: Path) -> None:
    refused = of("f/refused", REFUSAL)
    found = run(tmp_path / "run.jsonl", cell(refused))
    publish(
        [slim(one) for one in found.upgrades], [found], {refused.id: refused}, "6" * 64, tmp_path / "upgrades.jsonl"
    )
    text = (tmp_path / "upgrades.jsonl").read_text()
    (one,) = Results.read(tmp_path / "upgrades.jsonl", condensed=True).upgrades
    assert (one.outcome, one.observation, one.error and one.error.name) == ("refused", None, "Incompatible")
    assert one.differs is not None
    assert one.differs.because == "another schema"
    assert "somebody" not in text


@pytest.mark.parametrize(
    ("message", "first"),
    [
        (
            "Provided schema doesn't match: check it.\n- Provided key schema: k INT",
            "Provided schema doesn't match: check it.",
        ),
        (
            "[STREAM_FAILED] Query [id = 6b6b9a8f-12d1-4baf-bada-d9c553ea44a9, runId = 7b6b9a8f-12d1-4baf-bada-d9c553ea44a9] "
            "terminated with exception: [A.B] No file:/tmp/x/state/0 for 6b6b9a8f-12d1-4baf-bada-d9c553ea44a9, and/or '/home/me'.",
            "[A.B] No … for …, and/or '…'.",
        ),
        ("x" * 300, "x" * 200),
        ("", ""),
    ],
)
def test_the_message_of_a_refusal_is_its_first_line_whatever_the_machine(message: str, first: str) -> None:
    kept = slim(refusal(message)).error
    assert kept is not None
    assert kept.message == first


def test_only_a_refusal_keeps_its_message() -> None:
    named = refusal("No such key.")
    kept = [slim(named.model_copy(update={"outcome": outcome})).error for outcome in ("refused", "fails later")]
    assert [error and error.message for error in kept] == ["No such key.", ""]


def refusal(message: str) -> Cell:
    refused = cell(of("f/refused", REFUSAL))
    assert refused.error is not None
    return refused.model_copy(update={"error": refused.error.model_copy(update={"message": message})})


def test_a_checkpoint_that_connect_resumed_is_judged_by_what_the_case_says_of_connect() -> None:
    only_connect = of("f/refused", REFUSAL.model_copy(update={"resumed_by": "connect"}))
    seen = cell(only_connect).model_copy(update={"observation": SEEN.model_copy(update={"case": only_connect.id})})
    through = seen.model_copy(update={"target": f"{seen.target}-connect"})
    assert [again(one, only_connect).status for one in (seen, through)] == ["violates", "differs"]


def test_what_no_run_covers_is_announced(tmp_path: Path) -> None:
    cases = {id: of(id, REFUSAL) for id in ("f/refused", "f/later")}
    found = run(tmp_path / "run.jsonl", cell(cases["f/refused"]))
    publish([slim(one) for one in found.upgrades], [found], cases, "6" * 64, tmp_path / "upgrades.jsonl")
    published = Results.read(tmp_path / "upgrades.jsonl", condensed=True)
    assert [(one.case, one.status) for one in published.upgrades] == [("f/later", "not-run"), ("f/refused", "differs")]


def test_an_answer_is_judged_again_though_its_case_has_the_same_digest() -> None:
    """What ``upgrades.yaml`` says is not in it."""
    seen = cell(of("f/a"))
    (found,) = of_today([Results(header(), (), FOOTER, upgrades=(seen,))], {"f/a": of("f/a", REFUSAL)})
    assert (seen.status, found.status, found.observation) == ("violates", "differs", None)


def test_what_is_published_stays_unless_its_case_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    same, changed = (slim(cell(of(id, REFUSAL))) for id in ("f/same", "f/changed"))
    cases = {
        "f/same": of("f/same", REFUSAL),
        "f/changed": of("f/changed", REFUSAL).model_copy(update={"digest": "1" * 64}),
    }
    assert tuple(of_today([Results(header(), (), FOOTER, upgrades=(same, changed))], cases)) == (same,)
    assert "left out, as the case has changed: f/changed, spark-3.5.9 to spark-4.3.0" in capsys.readouterr().err


def test_a_green_answer_without_what_was_observed_is_only_read_as_published(tmp_path: Path) -> None:
    bare = slim(cell(of("f/refused", REFUSAL)))
    with pytest.raises(UnusableResults, match="nothing was observed"):
        run(tmp_path / "slim.jsonl", bare)
    assert Results.read(tmp_path / "slim.jsonl", condensed=True).upgrades == (bare,)


ROWS, METRIC = expect(rows=[["12:00", "12:10", 1]]), expect(rows=[], progress={"eventTime.avg": 0})
WITHOUT_METRIC = observed(SEEN.steps[0], step(2, batch(1))).model_copy(update={"case": "f/a"})


def test_metrics_that_results_do_not_keep_were_judged_when_it_ran() -> None:
    asked = case(ROWS, METRIC, id="f/a", query=QUERY)
    wrong = judged(asked, WITHOUT_METRIC)
    assert [getattr(one, "observed", None) for one in wrong.findings] == ["no such path"]
    assert again(wrong, asked).status == "violates"
    resumed = wrong.model_copy(update={"status": "conforms", "findings": ()})
    assert again(resumed, asked).status == "conforms"


def test_metrics_that_an_earlier_case_was_judged_by_say_nothing_about_the_case_of_today(
    capsys: pytest.CaptureFixture[str],
) -> None:
    green = judged(case(ROWS, expect(rows=[]), id="f/a", query=QUERY), WITHOUT_METRIC)
    assert green.status == "conforms"
    today = case(ROWS, METRIC, id="f/a", query=QUERY, digest="1" * 64)
    assert upgrade_again(green, today) is None
    assert tuple(of_today([Results(header(), (), FOOTER, upgrades=(green,))], {"f/a": today})) == ()
    assert "left out, as the case has changed: f/a, spark-3.5.9 to spark-4.3.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("then", "now"),
    [((REFUSAL,), ()), ((REFUSAL,), (REFUSAL.model_copy(update={"error": None, "steps": {2: change(rows=[])}}),))],
)
def test_a_refusal_that_no_entry_documents_any_more_is_not_published_as_documented(
    then: tuple[Upgrade, ...], now: tuple[Upgrade, ...]
) -> None:
    """Entries of ``upgrades.yaml`` are not in the digest of a case."""
    bare = slim(cell(of("f/a", *then)))
    assert bare.outcome == "refused"
    assert upgrade_again(bare, of("f/a", *now)) is None


def test_a_renewal_runs_what_has_no_published_answer_and_no_more() -> None:
    """A new release, a new case, and nothing that cannot be handed over."""
    known, new, topic = (
        of(id, REFUSAL).model_copy(update={"path": Path(f"{id}.yaml")}) for id in ("f/known", "f/new", "f/topic")
    )
    topic = topic.model_copy(update={"topics": {"events": KafkaSource()}})
    older, newer, newest = (Targets.load().of_release(SparkVersion.parse(text)) for text in ("3.5.9", "4.0.5", "4.3.0"))
    published = {
        ("f/known", older.name, newer.name, 2),
        ("f/known", older.name, newest.name, 2),
        ("f/new", older.name, newer.name, 2),
    }
    assert [*missing([known, new, topic], published, [(older, newer), (older, newest), (newest, older)])] == [
        Missing(older, (newest,), (new.path,)),
        Missing(newest, (older,), (known.path, new.path)),
    ]
    assert [*missing([known], published, [(older, newer), (older, newest)])] == []


def test_every_pair_of_lines_is_published_both_ways() -> None:
    """45 pairs of the lines from 3.0 on, and 2.4 with its neighbour."""
    pairs = {(origin.version.line, to.version.line) for origin, to in wanted_pairs()}
    assert len(pairs) == 2 * 45 + 2
    assert ("4.3", "3.0") in pairs
    assert {pair for pair in pairs if "2.4" in pair} == {("2.4", "3.0"), ("3.0", "2.4")}
