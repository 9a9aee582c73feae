"""``conformance case new`` and ``conformance case record``: from nothing to a case that says what a real Spark does."""

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest

from conformance.cli.new import NewCaseKind
from conformance.core.case import ExpectedError
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from conformance.judging.step_comparison import OutputSchema
from conformance.judging.verdict import judge, mismatching
from conformance.language.json_schema import ADDRESS
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations, observed_expectation
from reports.results.reading import Results
from reports.results.writing import ResultsWriter
from tests.support.commands import exit_code_of
from tests.support.observations import case, failed

SAMPLE = Path(__file__).parents[3] / "browser" / "sample"
RESULTS = Results.read(SAMPLE / "results.jsonl")

BARE = """# a comment at the head
title: A row behind the watermark still counts while its window is open    # a comment
streams: {events: "event_time TIMESTAMP, count INT"}
query:
  - from: events
  - withWatermark: [event_time, 25 minutes]
  - groupBy: ["window(event_time, '10 minutes')"]
    agg: [sum(count) AS total]
  - select: [window.start, window.end, total]
outputMode: update
steps:
  - name: the first row
    add: {events: [["12:00", 1]]}    # behind a value
    # after a step
  - {name: a later row, add: {events: [["12:30", 1]]}}
  - add:
      events:
        - ["12:01", 5]
    # the end

tags: [mine]
"""


def observation(id: str, version: str):
    cell = next(cell for cell in RESULTS.cells if (cell.case, cell.target) == (id, f"spark-{version}"))
    assert cell.observation is not None
    return cell.observation


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "cases" / "late-drops" / "window-still-open.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(BARE)
    return path


class TestRecord:
    def test_comments_and_order_stay(self, bare: Path) -> None:
        (case,) = discovery.load([bare]).cases
        text = fill_in_expectations(BARE, case, observation("late-drops/window-still-open", "4.3.0"))
        left = [line for line in text.splitlines() if line not in BARE.splitlines()]
        assert [line.strip() for line in left] == [
            "strength: observed",
            'expect: {rows: [["12:00", "12:10", 1]], watermark: "11:35", state: 1, dropped: 0}',
            '- {name: a later row, add: {events: [["12:30", 1]]}, expect: {rows: [["12:30", "12:40", 1]], '
            'watermark: "12:05", state: 2, dropped: 0}}',
            'expect: {rows: [["12:00", "12:10", 6]], watermark: "12:05", state: 2, dropped: 0}',
        ]
        kept = [line for line in BARE.splitlines() if line in text.splitlines()]
        assert len(kept) == len(BARE.splitlines()) - 1

    def test_what_is_recorded_is_what_the_engine_did(self, bare: Path) -> None:
        (case,) = discovery.load([bare]).cases
        seen = observation("late-drops/window-still-open", "4.3.0")
        bare.write_text(fill_in_expectations(BARE, case, seen))
        (again,) = discovery.load([bare]).cases
        assert again.strength == "observed"
        assert judge(again, SparkVersion(4, 3, 0), seen).status == "conforms"
        other = observation("late-drops/window-still-open", "3.3.4")
        assert judge(again, SparkVersion(3, 3, 4), other).status == "violates"

    @pytest.mark.parametrize("id", sorted({cell.case for cell in RESULTS.cells}))
    def test_replace_for_every_case_of_the_sample(self, tmp_path: Path, id: str) -> None:
        path = tmp_path / "cases" / f"{id}.yaml"
        path.parent.mkdir(parents=True)
        shutil.copy(SAMPLE / "cases" / f"{id}.yaml", path)
        (case,) = discovery.load([path]).cases
        for version in ("4.3.0", "3.3.4"):
            if id == "late-drops/window-still-open" and version == "3.3.4":
                continue
            seen = observation(id, version)
            if seen.steps[-1].error is not None and len(seen.steps) < len(case.steps):
                with pytest.raises(
                    WrongUsage, match="remove the later steps, or record with a version on which it succeeds"
                ):
                    fill_in_expectations(path.read_text(), case, seen, replace=True)
                continue
            path.write_text(fill_in_expectations(path.read_text(), case, seen, replace=True))
            loaded = discovery.load([path])
            if all("it repeats what step" in problem.message for problem in loaded.problems) and loaded.problems:
                continue  # the recorded version is one of `differs`, whose entry the author now has to remove
            assert loaded.problems == ()
            plain = loaded.cases[0].model_copy(update={"differs": ()})
            assert judge(plain, SparkVersion.parse(version), observation(id, version)).status == "conforms"

    def test_from_results_that_there_are(self, bare: Path, monkeypatch, capsys) -> None:
        monkeypatch.chdir(bare.parents[2])
        arguments = ("case", "record", str(bare), "--spark", "4.3", "--results", str(SAMPLE / "results.jsonl"))
        assert exit_code_of(*arguments) == 0
        assert "strength: observed" in bare.read_text()
        assert exit_code_of(*arguments) == 2
        assert "every step already has an expectation" in capsys.readouterr().err
        assert exit_code_of(*arguments, "--replace") == 0

    def test_a_case_without_an_answer_stays_as_it_is(self, bare: Path, tmp_path: Path, capsys) -> None:
        other = RESULTS.header.model_copy(update={"cases": ("x",), "targets": RESULTS.header.targets[:1]})
        with ResultsWriter(tmp_path / "r", other) as writer:
            writer.write(RESULTS.cells[0].model_copy(update={"case": "x", "target": other.targets[0].name}))
        assert exit_code_of("case", "record", str(bare), "--spark", "3.3", "--results", str(tmp_path / "r")) == 3
        assert bare.read_text() == BARE
        assert "nothing was recorded" in capsys.readouterr().err


class TestNew:
    @pytest.mark.parametrize("kind", get_args(NewCaseKind))
    def test_each_is_a_valid_case(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / "mine" / "case.yaml"
        assert exit_code_of("case", "new", str(path), "--kind", kind) == 0
        loaded = discovery.load([path])
        assert loaded.problems == ()
        assert all(step.expect is None for step in loaded.cases[0].steps)

    def test_nothing_is_written_over(self, bare: Path, capsys) -> None:
        assert exit_code_of("case", "new", str(bare)) == 2
        assert bare.read_text() == BARE
        assert "exists: choose another name" in capsys.readouterr().err

    def test_it_is_a_yaml_file(self, tmp_path: Path) -> None:
        assert exit_code_of("case", "new", str(tmp_path / "case.txt")) == 2

    def test_a_case_on_a_function_has_its_streams(self, tmp_path: Path, monkeypatch) -> None:
        (tmp_path / "src" / "acme").mkdir(parents=True)
        (tmp_path / "src" / "acme" / "jobs.py").write_text(
            "raise SystemExit('a module that must not be executed')\n"
            "def build(spark, orders, clicks):\n"
            "    orders = orders.withWatermark('order_time', '10 minutes')\n"
            "    return orders.join(clicks, 'who')\n"
        )
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "cases" / "job.yaml"
        assert exit_code_of("case", "new", str(path), "--call", "acme.jobs:build") == 0
        loaded = discovery.load([path])
        assert loaded.problems == ()
        (case,) = loaded.cases
        expected = {"orders": ["order_time", "key", "amount"], "clicks": ["event_time", "key", "amount"]}
        assert {name: [field.name for field in schema.fields] for name, schema in case.streams.items()} == expected
        first, *_ = path.read_text().splitlines()
        assert first == "# yaml-language-server: $schema=schema.json"
        schema = path.with_name("schema.json")
        assert json.loads(schema.read_text())["$id"] == ADDRESS
        # The schema that is there stays: it may be the team's.
        schema.write_text("{}")
        assert (
            exit_code_of("case", "new", str(path.with_name("other.yaml")), "--call", "acme.jobs:build", "--code", "src")
            == 0
        )
        assert schema.read_text() == "{}"

    def test_editors_find_the_schema_of_every_new_case(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def modeline(path: Path, *more: str) -> str:
            assert exit_code_of("case", "new", str(path), *more) == 0
            return path.read_text().splitlines()[0]

        monkeypatch.chdir(tmp_path)
        assert modeline(Path("cases/one.yaml")) == "# yaml-language-server: $schema=schema.json"
        assert json.loads(Path("cases/schema.json").read_text())["$id"] == ADDRESS
        # One for all folders below.
        assert (
            modeline(Path("cases/late/two.yaml"), "--kind", "join") == "# yaml-language-server: $schema=../schema.json"
        )
        assert not Path("cases/late/schema.json").exists()
        # Not one of somebody else, above where the command runs.
        monkeypatch.chdir(tmp_path / "cases" / "late")
        assert modeline(Path("three.yaml")) == "# yaml-language-server: $schema=schema.json"

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            ("acme:build", "there is no module acme in"),
            ("jobs:biuld", "defines no function 'biuld' at its top level"),
            ("jobs:alone", "the function takes no stream: alone(spark, orders, …)"),
            ("broken:build", "is not Python"),
        ],
    )
    def test_a_function_that_is_not_there(self, tmp_path: Path, monkeypatch, capsys, call: str, said: str) -> None:
        (tmp_path / "jobs.py").write_text("def build(spark, orders): ...\ndef alone(spark): ...\n")
        (tmp_path / "broken.py").write_text("def build(:\n")
        monkeypatch.chdir(tmp_path)
        assert exit_code_of("case", "new", "case.yaml", "--call", call) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "case.yaml").exists()


def test_the_schema_is_the_published_one(capsys) -> None:
    assert exit_code_of("case", "schema") == 0
    assert capsys.readouterr().out == (discovery.shipped() / "schema.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("classes", "message", "told"),
    [
        (
            ("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "AnalysisException"),
            "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output mode: append.",
            {"class": "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "stage": "start"},
        ),
        (
            ("AnalysisException", "CapturedException"),
            "Join (of 2 streams) is not supported;\nJoin Inner\n:- Project [id#7]",
            {"class": "AnalysisException", "message": r"Join \(of", "stage": "start"},
        ),
        (
            ("StreamingQueryException", "CapturedException", "IllegalStateException"),
            "\nIncomplete log file file:/tmp/x/commits/7",
            {"class": "IllegalStateException", "message": "Incomplete log file", "stage": "start"},
        ),
    ],
)
def test_an_error_that_others_share_its_class_with_is_recorded_with_its_message(
    classes: tuple[str, ...], message: str, told: dict[str, str]
) -> None:
    seen = failed(1, *classes, stage="start", message=message)
    assert observed_expectation(seen, OutputSchema.of(()), case(None)) == {"error": told}
    assert not tuple(mismatching(ExpectedError.model_validate({**told, "class": (told["class"],)}), seen.error))
