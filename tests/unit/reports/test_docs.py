"""The pages on the report and the gate, followed to the letter. Here results that are recorded stand in for an engine."""

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from conformance.cli.main import main
from conformance.core.case import Case
from conformance.core.observation import Observation
from conformance.core.versions import SparkVersion
from conformance.judging.verdict import judge
from conformance.suite import discovery
from conformance.suite.record_expectations import fill_in_expectations
from reports.results.reading import Results
from reports.results.records import Cell
from reports.results.writing import ResultsWriter
from tests.support.transcript import Command, File, transcript

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "tests" / "browser" / "sample"
LATE = "late-drops/late-by-the-watermark-of-the-batch-before"
"""The case that the example of the page is another telling of."""


class Follower:
    """Someone in an empty folder who does what the page says."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._results = Results.read(SAMPLE / "results.jsonl")

    def follow(self, page: Path) -> int:
        commands = 0
        for act in transcript(page):
            match act:
                case File(path, content):
                    (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (self._folder / path).write_text(content)
                case Command(line, printed, exit_code):
                    commands += 1
                    self._do(line, printed, exit_code)
        return commands

    def _do(self, line: str, printed: tuple[str, ...], exit_code: int) -> None:
        match shlex.split(line):
            case ["conformance", "case", "record", case, *_]:
                self._record(self._folder / case)
            case ["conformance", "run", *arguments]:
                self._run(arguments)
            case ["conformance", *arguments] if not re.search(r"[|<>&;$]", line):
                self._judge(line, printed, exit_code, *self._here(arguments))
            case _:
                programs = str(Path(sys.executable).parent)
                environ = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"], "PYTHONPATH": str(ROOT)}
                command = line.replace("conformance ", f"{sys.executable} -m conformance.cli.main ", 1)
                done = subprocess.run(
                    command, shell=True, cwd=self._folder, env=environ, capture_output=True, text=True, check=False
                )
                self._judge(line, printed, exit_code, done.returncode, done.stdout, done.stderr)

    def _here(self, arguments: list[str]) -> tuple[object, str, str]:
        """A command in this process, which has imported everything: exit code, standard output, standard error."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with chdir(self._folder), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stopped:
            main(arguments)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read())
        return stopped.value.code, said[0], said[1]

    def _judge(self, line: str, printed: tuple[str, ...], wanted: int, exit_code: object, out: str, err: str) -> None:
        assert exit_code == wanted, line + out + err
        assert [text for text in printed if text not in out.splitlines()] == [], out

    def _observation(self, case: Case, target: str) -> Observation:
        """What the sample has, with the stream's name in this case."""
        (cell,) = [cell for cell in self._results.cells if (cell.case, cell.target) == (LATE, target)]
        assert cell.observation is not None
        (stream,) = case.streams
        renamed = json.loads(cell.observation.model_dump_json())
        for source in (source for step in renamed["steps"] for batch in step["batches"] for source in batch["sources"]):
            source["stream"] = stream
        return Observation.model_validate_json(json.dumps({**renamed, "case": case.id}))

    def _record(self, path: Path) -> None:
        (case,) = discovery.load([path]).cases
        path.write_text(fill_in_expectations(path.read_text(), case, self._observation(case, "spark-3.3.4")))

    def _run(self, arguments: list[str]) -> None:
        results = arguments[arguments.index("-o") + 1] if "-o" in arguments else "results.jsonl"
        loaded = discovery.load([self._folder / arguments[0]])
        loaded.raise_for_problems()
        targets = self._results.header.targets[: arguments.count("--spark")]
        cases = tuple(case.id for case in loaded.cases)
        header = self._results.header.model_copy(update={"cases": cases, "targets": targets, "suite": loaded.digest})
        with ResultsWriter(self._folder / results, header) as writer:
            for case in loaded.cases:
                for target in targets:
                    seen = self._observation(case, target.name)
                    verdict = judge(case, SparkVersion.parse(target.spark), seen)
                    writer.write(Cell.of(case, target.name, verdict, [seen]))


def test_gate_your_upgrade(tmp_path: Path) -> None:
    assert Follower(tmp_path).follow(ROOT / "docs" / "gate-your-upgrade.md") == 18
    assert (tmp_path / "junit.xml").is_file()
    assert "An order that waited counts" in (tmp_path / "report.html").read_text()
    assert "strength: observed" in (tmp_path / "my" / "cases" / "late-order.yaml").read_text()


def test_the_readme_shows_what_the_page_of_an_own_job_does() -> None:
    """An engine carries out the command of that page, and its output is compared."""
    (shown,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    page = (ROOT / "docs" / "your-own-job.md").read_text(encoding="utf-8")
    assert shown.replace(" \\\n   ", "") in page


def test_the_first_command_of_the_readme(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It needs only what comes with the suite, so its output can be compared whatever Spark there is."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    installing, _, command = re.search(r"```sh\n(.*?)\n```", text, re.DOTALL)[1].partition(" && ")
    assert installing == "pip install -e ."
    shown = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)[1]
    words = shlex.split(command)
    assert words[:2] == ["conformance", "gate"]
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as stopped:
        main(words[1:])
    out, err = capsys.readouterr()
    assert stopped.value.code == 1, out + err
    assert out == shown + "\n"
    assert len(out.splitlines()) <= 24


def test_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small report stands in for that of all published results, which tests/browser opens."""
    monkeypatch.setattr("reports.results.published.published", lambda: (SAMPLE / "results.jsonl",))
    shutil.copy(SAMPLE / "results.jsonl", tmp_path)
    shutil.copytree(SAMPLE / "cases", tmp_path / "my" / "cases")
    assert Follower(tmp_path).follow(ROOT / "docs" / "report.md") == 8


def test_writing_cases(tmp_path: Path) -> None:
    reader = Follower(tmp_path)
    assert reader.follow(ROOT / "docs" / "writing-cases.md") == 2
    assert reader.follow(ROOT / "docs" / "example-cases.md") == 1
    families = {path.parent.name for path in (tmp_path / "my" / "cases").rglob("*.yaml")}
    assert families == {path.name for path in (ROOT / "cases").iterdir() if path.is_dir()} - {"policies"}
