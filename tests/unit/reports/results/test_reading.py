"""Results files are written as cells come in and read back whole."""

import json
from pathlib import Path
from threading import Thread

import jsonschema
import pytest

import reports.results.records
from conformance.core.observation import Observation
from conformance.core.output_file import BeingWritten
from conformance.suite.discovery import Suite
from reports.results.errors import UnusableResults
from reports.results.reading import Results, together
from reports.results.records import TargetRecord, json_schema
from reports.results.status import MARKS
from reports.results.writing import ResultsWriter
from tests.support.runs import FINISHED, STARTED, case_named, cell, header, written

SCHEMA = Path(reports.results.records.__file__).with_name("results.schema.json")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "results.jsonl"
    statuses = {("late/a", "spark-3.5.9"): "violates", ("late/b", "spark-4.3.0"): "differs"}
    results = Results.read(written(path, statuses=statuses))  # type: ignore[arg-type]
    assert results.header == header(("late/a", "late/b"), ("spark-3.5.9", "spark-4.3.0"))
    assert results.cells == (
        cell("late/a", "spark-3.5.9", "violates"),
        cell("late/a", "spark-4.3.0"),
        cell("late/b", "spark-3.5.9"),
        cell("late/b", "spark-4.3.0", "differs"),
    )
    assert results.footer.counts == {"violates": 1, "conforms": 2, "differs": 1}
    assert (results.header.started, results.footer.finished) == (STARTED, FINISHED)


def test_a_cell_keeps_its_evidence_without_the_raw_progress() -> None:
    one = cell("late/a", "spark-3.5.9", "violates")
    assert isinstance(one.observation, Observation)
    assert one.observation.steps[0].batches[0].progress == {}
    assert one.findings[0].aspect == "rows"
    assert (one.family, one.duration_ms, one.behaviour is not None) == ("late", 12, True)
    assert cell("late/a", "spark-3.5.9", "differs").differs is not None


def test_each_cell_is_on_the_disk_when_it_is_written(tmp_path: Path) -> None:
    path, part = tmp_path / "r", tmp_path / "r.part"
    writer = ResultsWriter(path, header(("a", "b"), ("spark-3.5.9",)))
    assert [line["record"] for line in lines(part)] == ["header"]
    writer.write(cell("a", "spark-3.5.9"))
    assert [line["record"] for line in lines(part)] == ["header", "cell"]
    assert writer.missing() == {("b", "spark-3.5.9")}
    writer.write(cell("b", "spark-3.5.9"))
    writer.finish()
    assert [line["record"] for line in lines(path)] == ["header", "cell", "cell", "footer"]


def test_the_writer_takes_each_announced_cell_once(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path / "r", header(("a",), ("spark-3.5.9",))) as writer:
        writer.write(cell("a", "spark-3.5.9"))
        with pytest.raises(ValueError, match="already has its result"):
            writer.write(cell("a", "spark-3.5.9"))
        with pytest.raises(ValueError, match="not a cell of this run"):
            writer.write(cell("b", "spark-3.5.9"))
        with pytest.raises(ValueError, match="not a target of this run"):
            writer.introduce(TargetRecord(name="spark-9", spark="9"))


def test_threads_may_share_a_writer(tmp_path: Path) -> None:
    ids = tuple(f"f/{number}" for number in range(40))
    with ResultsWriter(tmp_path / "r", header(ids, ("spark-3.5.9",))) as writer:
        threads = [Thread(target=lambda id=id: writer.write(cell(id, "spark-3.5.9"))) for id in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {one.case for one in Results.read(tmp_path / "r").cells} == set(ids)


def test_a_target_is_what_its_engine_says_it_is(tmp_path: Path) -> None:
    met = TargetRecord(name="spark-3.5.9", spark="3.5.9-vendor-1", java="17.0.1", python="3.11.2", os="Linux")
    with ResultsWriter(tmp_path / "r", header(("a",), ("spark-3.5.9",))) as writer:
        writer.introduce(met)
        writer.write(cell("a", "spark-3.5.9"))
    assert Results.read(tmp_path / "r").header.targets == (met,)


def test_the_published_schema_is_that_of_the_records() -> None:
    assert json.loads(SCHEMA.read_text()) == json_schema(), "run: python -m tools.regenerate"


def test_lines_match_the_schema(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    targets = ("spark-3.0.3", "spark-3.5.9", "spark-4.3.0")
    statuses = {(f"f/{status}", target): status for status in MARKS for target in targets}
    path = written(tmp_path / "r", tuple(f"f/{status}" for status in MARKS), targets, statuses)
    for line in lines(path):
        validator.validate(line)
    assert not validator.is_valid({"record": "cell", "case": "a"})
    assert not validator.is_valid({**lines(path)[0], "surprise": 1})


def test_the_suite_digest_is_of_the_cases_and_not_of_their_order() -> None:
    one, two = case_named("a"), case_named("b")
    assert Suite((one, two)).digest == Suite((two, one)).digest
    assert Suite((one,)).digest != Suite((one, two)).digest
    assert Suite((one,)).digest != Suite((one.model_copy(update={"digest": "1" * 64}),)).digest


class TestTogether:
    def test_runs_of_other_targets(self, tmp_path: Path) -> None:
        old = written(tmp_path / "old", targets=("spark-3.5.9",))
        new = written(tmp_path / "new", targets=("spark-4.3.0",))
        results = Results.read_all([old, new])
        assert [target.name for target in results.header.targets] == ["spark-3.5.9", "spark-4.3.0"]
        assert results.footer.counts == {"conforms": 4}
        assert results.paths == (old, new)

    def test_one_is_itself(self, tmp_path: Path) -> None:
        one = Results.read(written(tmp_path / "r"))
        assert together([one]) is one

    def test_no_results_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="no results"):
            together([])


@pytest.mark.parametrize("denied", [(1,), (2, 4), (3,)])
def test_a_file_with_a_status_that_its_evidence_denies_is_refused(tmp_path: Path, denied: tuple[int, ...]) -> None:
    """The first of several is named, by its line."""
    path = written(tmp_path / "r")
    records = lines(path)
    places = [place for place, record in enumerate(records) if record["record"] == "cell"]
    for cell_number in denied:
        records[places[cell_number - 1]]["observation"] = None
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n")
    with pytest.raises(UnusableResults, match=f"line {places[denied[0] - 1] + 1}\\b.*nothing was observed"):
        Results.read(path)


def test_a_file_that_is_cut_off_is_that_first_of_all(tmp_path: Path) -> None:
    path = written(tmp_path / "r")
    records = [record | {"observation": None} if record["record"] == "cell" else record for record in lines(path)]
    path.write_text("\n".join(json.dumps(record) for record in records[:-1]) + "\n")
    with pytest.raises(UnusableResults, match="the run was interrupted"):
        Results.read(path)


class TestNothingIsLost:
    def interrupt(self, path: Path) -> ResultsWriter:
        writer = ResultsWriter(path, header(("a", "b"), ("spark-3.5.9",)))

        def interrupted() -> None:
            with writer:
                writer.write(cell("a", "spark-3.5.9"))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        return writer

    def test_an_interrupted_run_keeps_a_complete_file(self, tmp_path: Path) -> None:
        path = written(tmp_path / "r")
        before = path.read_bytes()
        writer = self.interrupt(path)
        assert path.read_bytes() == before
        assert writer.left_at == tmp_path / "r.part"
        with pytest.raises(UnusableResults, match="1 of 2 cells"):
            Results.read(writer.left_at)
        assert len(Results.read(written(path, cases=("late/a",))).cells) == 2
        assert not writer.left_at.exists()

    def test_an_interrupted_run_replaces_an_interrupted_one(self, tmp_path: Path) -> None:
        path = tmp_path / "r"
        for _ in range(2):
            assert self.interrupt(path).left_at == path
            with pytest.raises(UnusableResults, match="1 of 2 cells"):
                Results.read(path)
        assert [each.name for each in tmp_path.iterdir()] == ["r"]

    def test_two_runs_never_write_one_file(self, tmp_path: Path) -> None:
        with ResultsWriter(tmp_path / "r", header(("a",), ("spark-3.5.9",))) as first:
            with pytest.raises(BeingWritten):
                ResultsWriter(tmp_path / "r", header(("a",), ("spark-3.5.9",)))
            first.write(cell("a", "spark-3.5.9"))
        assert len(Results.read(tmp_path / "r").cells) == 1
