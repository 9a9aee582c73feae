"""What CI systems read: each format as its schema says, and hostile text as text."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import pytest
import xmlschema

import reports.exports.everything as everything_module
from conformance.cli.main import main
from conformance.suite import discovery
from reports.analysis.change import changes
from reports.analysis.matrix import Matrix
from reports.analysis.report import Report
from reports.exports.ci_reports import MOST_BYTES, badge, junit, step_summary, workflow_commands
from reports.exports.everything import everything, json_schema
from reports.results.reading import Results
from reports.results.status import MARKS
from tests.support import cells as a
from tests.support.runs import written

SCHEMAS = Path(__file__).with_name("schemas")
HOSTILE = "</pre><script>alert(1)</script> | `x` \u202e ::error:: %0A \x1b[31m \x00 \ufffe"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    targets = ("spark-3.5.9", "spark-4.3.0")
    statuses = {(f"f/{status}", target): status for status in MARKS for target in targets}
    return Results.read(written(tmp_path / "r", tuple(f"f/{status}" for status in MARKS), targets, statuses))


def with_entry(results: Results, notes: tuple[str, ...] = (), **said: object) -> Results:
    """The same results with these notes, whose entries of cases say this."""
    entries = (cell.differs and cell.differs.model_copy(update=said) for cell in results.cells)
    cells = (
        cell.model_copy(update={"notes": notes or cell.notes, "differs": entry})
        for cell, entry in zip(results.cells, entries, strict=True)
    )
    return Results(results.header, tuple(cells), results.footer)


@pytest.fixture
def hostile(results: Results) -> Results:
    return with_entry(results, (HOSTILE,), because=HOSTILE)


class TestJUnit:
    SCHEMA = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))

    def test_it_is_as_the_schema_says(self, results, hostile) -> None:
        self.SCHEMA.validate(junit(results))
        self.SCHEMA.validate(junit(hostile))

    def test_the_schema_refuses_what_jenkins_refuses(self, results) -> None:
        assert not self.SCHEMA.is_valid("<testsuites><testsuite name='a'><testcase/></testsuite></testsuites>")
        assert not self.SCHEMA.is_valid(junit(results).replace("<testcase ", "<testcase file='x' ", 1))

    def test_names_are_unique(self, results) -> None:
        cases = [(case.get("name"), case.get("classname")) for case in Xml.fromstring(junit(results)).iter("testcase")]
        assert len({name for name, _ in cases}) == len(cases) == 18

    def test_statuses(self, results) -> None:
        root = Xml.fromstring(junit(results))
        assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
            "tests": "18",
            "failures": "4",
            "errors": "4",
        }
        child = {case.get("name"): [one.tag for one in case] for case in root.iter("testcase")}
        assert child["f/violates [spark-3.5.9]"] == ["failure"]
        assert child["f/flaky [spark-3.5.9]"] == ["failure"]
        assert child["f/broken [spark-3.5.9]"] == child["f/not-run [spark-3.5.9]"] == ["error"]
        assert child["f/not-applicable [spark-3.5.9]"] == ["skipped"]
        assert child["f/conforms [spark-3.5.9]"] == []
        assert child["f/differs [spark-3.5.9]"] == child["f/bug [spark-3.5.9]"] == ["system-out"]
        said = {case.get("name"): case.findtext("system-out") for case in root.iter("testcase")}
        assert said["f/bug [spark-3.5.9]"] == "known bug of these versions: rows are lost (SPARK-2)"

    def test_what_was_found_is_in_it(self, results) -> None:
        failure = next(Xml.fromstring(junit(results)).iter("failure"))
        assert failure.get("type") in ("violates", "flaky")
        text = "".join(one.text or "" for one in Xml.fromstring(junit(results)).iter("failure"))
        assert "expected, not emitted" in text


class TestStepSummary:
    def test_what_is_wrong_is_told_before_what_changes_and_the_numbers(self, tmp_path) -> None:
        found = a.results(tmp_path / "r", {"f/a": {"3.5.9": a.CALM, "4.3.0": a.LOST}})
        matrix = Matrix.of(found)
        text = step_summary(found, (changes(matrix, *matrix.targets),))
        heads = re.findall(r"^#+ .*", text, re.MULTILINE)
        assert heads == [
            "## Watermark conformance",
            "### Not as expected",
            "### From 3.5.9 to 4.3.0",
            "### As expected",
        ]
        assert "1 of 2 rows is no longer emitted" in text

    def test_hostile_text_is_text(self, hostile) -> None:
        text = step_summary(hostile)
        assert "<script" not in text
        assert "</pre><" not in text.replace("</pre></details>", "")

    def test_it_stays_under_what_github_takes(self, results) -> None:
        bulky = tuple(cell.model_copy(update={"notes": ("é" * 900_000,)}) for cell in results.cells)
        text = step_summary(Results(results.header, bulky, results.footer))
        assert len(text.encode()) < MOST_BYTES
        many = tuple(f"f/{number}" for number in range(300))
        header = results.header.model_copy(update={"cases": many})
        cells = tuple(results.cells[8].model_copy(update={"case": id, "notes": ("x" * 9_000,)}) for id in many)
        assert len(step_summary(Results(header, cells, results.footer)).encode()) < MOST_BYTES

    def test_known_bugs_are_told_with_the_versions_that_have_them(self, results) -> None:
        text = step_summary(results)
        assert "### Known bugs" in text
        assert "| ▲ | f/bug | rows are lost (SPARK-2) | 3.5.9; 4.3.0 |" in text

    def test_a_bug_that_no_ticket_reports(self, results) -> None:
        unreported = with_entry(results, link=None, introduced_by="SPARK-51955")
        told = "rows are lost (no ticket, introduced by SPARK-51955)"
        assert f"| ▲ | f/bug | {told} | 3.5.9; 4.3.0 |" in step_summary(unreported)
        assert told in workflow_commands(unreported, "my/cases")
        assert f"known bug of these versions: {told}" in junit(unreported)


class TestAnnotations:
    def test_file_and_line(self, results) -> None:
        lines = workflow_commands(results, "my/cases").splitlines()
        (violation,) = [line for line in lines if "violates" in line and "3.5.9" in line]
        assert violation.startswith(
            "::error file=my/cases/f/violates.yaml,line=16,title=spark-3.5.9%2C step 1::rows%0A"
        )
        assert sum(line.startswith("::warning ") for line in lines) == 4

    def test_hostile_text_is_one_line(self, hostile) -> None:
        for line in workflow_commands(hostile).split("\n")[:-1]:
            assert line.startswith(("::error ", "::warning ", "::notice "))

    def test_a_known_bug_is_a_notice(self, results) -> None:
        lines = workflow_commands(results, "my/cases").splitlines()
        assert "::notice file=my/cases/f/bug.yaml,title=spark-3.5.9%2C known bug::rows are lost (SPARK-2)" in lines

    def test_nothing_to_tell(self, tmp_path) -> None:
        assert workflow_commands(Results.read(written(tmp_path / "calm"))) == ""


@pytest.mark.parametrize(
    ("status", "color", "message"),
    [
        ("conforms", "brightgreen", "2 of 2"),
        ("differs", "brightgreen", "2 of 2"),
        ("violates", "red", "1 of 2"),
        ("broken", "yellow", "1 of 2"),
        ("not-applicable", "brightgreen", "1 of 1"),
    ],
)
def test_badge(tmp_path, status, color, message) -> None:
    found = Results.read(written(tmp_path / "r", ("f/a",), statuses={("f/a", "spark-4.3.0"): status}))
    said = json.loads(badge(found))
    assert (said["schemaVersion"], said["color"], said["message"]) == (1, color, message)
    assert json.loads(badge(found, "3.5"))["message"] == "1 of 1"


def test_a_badge_beside_known_bugs_is_not_bright_green(tmp_path) -> None:
    entry = a.bug("<4")
    found = a.results(tmp_path / "bug.jsonl", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}}, {"f/a": (entry,)})
    said = json.loads(badge(found))
    assert (said["color"], said["message"], said["isError"]) == ("yellow", "1 of 2, 1 known bug", False)
    assert json.loads(badge(found, "4.3"))["color"] == "brightgreen"


class TestEverything:
    def test_the_published_schema_is_that_of_the_document(self) -> None:
        published = Path(everything_module.__file__).with_name("everything.schema.json")
        assert json.loads(published.read_text()) == json_schema(), "run: python -m tools.regenerate"

    def test_it_is_as_its_schema_says(self, results, hostile) -> None:
        for one in (results, hostile):
            jsonschema.validate(json.loads(everything(Report.of(one, discovery.Suite(())))), json_schema())

    def test_equal_numbers_are_equal_behaviours(self, tmp_path) -> None:
        found = a.results(tmp_path / "r", {"f/a": {"3.3.4": a.LOST, "3.5.9": a.CALM, "4.3.0": a.CALM}})
        document = json.loads(everything(Report.of(found, discovery.Suite(()))))
        assert [cell["behaviour"] for cell in document["cases"][0]["cells"]] == [1, 0, 0]
        assert [(pair["before"], pair["after"], len(pair["changes"])) for pair in document["pairs"]] == [
            ("spark-3.3.4", "spark-3.5.9", 1),
            ("spark-3.3.4", "spark-4.3.0", 1),
            ("spark-3.5.9", "spark-4.3.0", 0),
        ]


def test_a_damaged_file_is_told_and_nothing_is_written(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results.jsonl").write_text("")
    with pytest.raises(SystemExit) as stopped:
        main(["case", "export", "junit", "results.jsonl", "--output", "junit.xml"])
    assert stopped.value.code == 3
    assert "the file is empty" in capsys.readouterr().err
    assert not Path("junit.xml").exists()


def test_the_file_of_a_case_that_a_matrix_made(results) -> None:
    cells = tuple(
        cell.model_copy(update={"case": "f/broken.left-outer", "expansion": "left-outer"})
        if cell.case == "f/broken"
        else cell
        for cell in results.cells
    )
    made = Results(results.header, cells, results.footer)
    assert any("file=cases/f/broken.yaml," in line for line in workflow_commands(made).splitlines())


def exit_code(*arguments: str) -> object:
    with pytest.raises(SystemExit) as stopped:
        main(["case", "export", *arguments])
    return stopped.value.code


def test_a_case_is_written_as_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    case = "late-drops/delay-20-drops-a-row-45-seconds-behind"
    assert exit_code("script", case) == 0
    script = capsys.readouterr().out
    compile(script, "script", "exec")
    assert script.splitlines()[1] == f"# {case} of watermark-conformance"


def test_a_case_that_is_no_plain_program_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("script", "recovery/killed-at-rest-goes-on-with-watermark-and-state") == 2
    assert "is not a plain program: it kills its engine" in capsys.readouterr().err
    assert exit_code("script", "one", "two") == 2
    assert "script takes one case" in capsys.readouterr().err
