"""Files that a stranger, a crash or a mistake left: which exit code each ends with, and the one line that says why."""

import json
import os
import re
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conformance.suite.discovery import shipped
from tests.support import cells as a
from tests.support.commands import answer_of
from tests.support.runs import forged, written

STREAM = 'title: t\nstreams: {events: "event_time TIMESTAMP"}\nquery: [from: events]\n'
CASE = STREAM + 'steps: [{add: {events: [["12:00"]]}}]\n'
ACCEPTED = "accepted:\n  - case: late/a\n    because: we looked at it\n"
Change = Callable[[list[dict[str, Any]]], object]


@dataclass(frozen=True)
class Trial:
    """A command line in a folder with ``r``, results of two versions, and ``x``, the same after a change."""

    name: str
    command: str
    code: int
    told: str
    """A pattern of the one line on standard error."""
    change: Change | None = None
    files: Mapping[str, str | bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def header(**values: object) -> Change:
    return lambda lines: lines[0].update(values)


def footer(**values: object) -> Change:
    return lambda lines: lines[-1].update(values)


def refused(name: str, told: str, change: Change) -> Trial:
    """Results that cannot be used after the change."""
    return Trial(name, "maintain combine x", 3, told, change)


def invalid(name: str, told: str, text: str | bytes) -> Trial:
    """A case with this text."""
    return Trial(name, "case validate x.yaml", 2, told, files={"x.yaml": text})


def no_cells(lines: list[dict[str, Any]]) -> None:
    lines[0]["cases"] = []
    lines[:] = [lines[0], {**lines[-1], "counts": {}, "digest": None}]


PAIR = "--from 3.5.9 --to 4.3.0"
ENDLESS = b"\0" * (32 * 1024**2 + 2)
C_YAML, SITE = {"c.yaml": CASE}, {"site/index.html": "<p>mine"}

RESULTS = [
    # Nothing wrongly green.
    Trial(
        "a version with itself",
        "gate r --from 3.5.9 --to 3.5",
        2,
        r"--from 3\.5\.9 and --to 3\.5 are both spark-3\.5\.9",
    ),
    Trial(
        "a summary of a version with itself", "case export summary r --from 3.5.9 --to 3.5", 2, "are both spark-3.5.9"
    ),
    Trial("no cells", "report x", 3, "there is no cell in these results", no_cells),
    refused("another format", "the file has format 0, but .*: run again", header(format=0)),
    refused("a missing part of many", r"2/9999, .* and 9988 more; pass", header(shard=[1, 9999])),
    # Said in one line.
    refused("a start without a zone", "started: .*timezone", header(started="2026-01-02T03:04:05")),
    Trial("an end without a zone", "report x", 3, "finished: .*timezone", footer(finished="2026-01-02T03:04:05")),
    refused("half a character", "line 1 is not a valid record", header(command="\ud800")),
    refused("a name that is a command", "text on one line", header(cases=["late/a\n::error::x", "late/b"])),
    Trial("no such file", "gate nowhere --from 3.5 --to 4.3", 2, "nowhere: there is no such file"),
    Trial("an empty file", "maintain diff empty r", 3, "the file is empty", files={"empty": ""}),
    Trial("a case", "report c.yaml", 2, "line 1 is not JSON", files={"c.yaml": CASE}),
    Trial("an endless line", "maintain combine zeros", 3, "line 1 is not JSON .*more than", files={"zeros": ENDLESS}),
    # Nothing lost.
    Trial(
        "results over a case",
        "maintain combine r -o c.yaml",
        2,
        "c.yaml exists and is not a results file",
        files=C_YAML,
    ),
    Trial("an export over results", "case export json r -o r", 2, "r exists and is not an export of the format json"),
    Trial(
        "a draft over reasons",
        f"gate r {PAIR} --accept a.yaml --draft a.yaml",
        2,
        "a.yaml exists and is not a draft without reasons",
        files={"a.yaml": ACCEPTED},
    ),
    Trial("pages over a site", "report r -o site", 2, "index.html exists and is not a page of a report", files=SITE),
    Trial(
        "results into a folder",
        "maintain combine r -o folder",
        2,
        "write folder: Is a directory",
        files={"folder/x": ""},
    ),
    Trial(
        "results below a file",
        "maintain combine r -o c.yaml/x",
        2,
        "cannot write c.yaml/x: Not a directory",
        files=C_YAML,
    ),
    Trial("results on a full disk", "maintain combine r -o /dev/full", 3, "cannot write /dev/full: No space left"),
    Trial("an export on a full disk", "case export json r -o /dev/full", 3, "cannot write /dev/full: No space left"),
]

CASES = [
    invalid(
        "a matrix of 12 × 10",
        "1,000,000,000,000 combinations",
        CASE + "matrix:\n" + "".join(f"  p{n}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for n in range(12)),
    ),
    invalid(
        "a deep schema",
        "nested more than 60 levels deep",
        CASE.replace("TIMESTAMP", "ARRAY<" * 5_000 + "INT" + ">" * 5_000),
    ),
    invalid(
        "a deep regular expression",
        "is not a regular expression",
        CASE.replace("}]", ", expect: {error: {message: '" + "(" * 5_000 + ")" * 5_000 + "'}}}]", 1),
    ),
    invalid(
        "a long number in a schema",
        "is not a whole number",
        CASE.replace("TIMESTAMP", f"DECIMAL({'9' * 5_000})"),
    ),
    invalid(
        "half a character in a case",
        r"x.yaml:1:8: \\ud800 is half of a character",
        CASE.replace("title: t", r'title: "\ud800"'),
    ),
    Trial("a case without end", "case validate /dev/zero", 2, "/dev/zero: no cases"),
    invalid("a big case", "more than 2000000 bytes", b"#" * 2_000_001),
    Trial("a case that exists", "case new x.yaml", 2, "x.yaml exists", files={"x.yaml": CASE}),
    Trial("an unknown case", "explain nothing", 2, "'nothing' is neither a case of the suite nor a file"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "r")
    return tmp_path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def outcome(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    """Exit code, standard output and standard error."""
    return answer_of(capsys, *command.split())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("trial", [*RESULTS, *CASES], ids=str)
def test_it_ends_in_one_line_and_leaves_every_file(
    trial: Trial, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if trial.change is not None:
        lines = records(folder / "r")
        trial.change(lines)
        write(folder / "x", lines)
    for name, content in trial.files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = tree(folder)
    code, out, err = outcome(trial.command, capsys)
    said = [line for line in err.splitlines() if not re.fullmatch(r"\d+ cases?, .*|Try .*", line)]
    shown = [*said, *(out.splitlines() if trial.command.startswith("case validate") else ())]
    assert (code, [line for line in shown if re.search(trial.told, line)]) == (trial.code, shown)
    assert len(shown) == 1
    assert "defect" not in err
    assert "Traceback" not in err
    assert tree(folder) == before


def test_a_sparse_file_of_5_gb_is_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "sparse").open("wb") as file:
        os.truncate(file.fileno(), 5 * 1000**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, _, err = outcome("maintain combine sparse", capsys)
    assert (code, err.count("\n")) == (2, 1)
    assert "5,000,000,000 bytes" in err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"


def test_rows_changed_under_a_kept_digest_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome("gate r --from 3.5.9 --to 4.3.0", capsys)[0] == 0
    lines = records(folder / "r")
    place, changed = next((at, line) for at, line in enumerate(lines, 1) if line.get("target") == "spark-4.3.0")
    changed["observation"]["steps"][0]["batches"][0]["rows"][0][-1] = 99
    write(folder / "r", lines)
    for command in (
        f"gate r {PAIR}",
        "maintain combine r",
        "maintain combine r -o all",
        "maintain diff r r",
        "report r",
    ):
        code, _, err = outcome(command, capsys)
        assert (code, (folder / "all").exists()) == (3, False)
        assert f"r: line {place} says that late/a on spark-4.3.0 has the status conforms, but its digest is not" in err


def without(case: str, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The file as if the case had never been part of the run, but for the digest of the footer."""
    lines[0]["cases"].remove(case)
    kept = [line for line in lines if line.get("case") != case]
    kept[-1]["counts"] = {"conforms": sum(line["record"] == "cell" for line in kept)}
    return kept


def test_a_case_that_is_missing_everywhere_is_noticed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "x", without("late/b", records(folder / "r")))
    for command in ("maintain combine x -o all", f"gate x {PAIR}", "case export badge x"):
        code, _, err = outcome(command, capsys)
        assert (code, (folder / "all").exists()) == (3, False)
        assert "x: the cells are not those that the digest of the footer is about" in err


def test_combining_into_one_of_the_inputs_keeps_it_until_the_whole_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder / "a", targets=("spark-3.5.9",))
    written(folder / "b", targets=("spark-4.3.0",))
    before = (folder / "a").read_bytes()
    with monkeypatch.context() as full:
        full.setattr("pathlib.Path.replace", _no_space)
        code, _, err = outcome("maintain combine a b -o a", capsys)
    assert (code, (folder / "a").read_bytes()) == (3, before)
    assert "cannot write a: No space left on device" in err
    assert outcome("maintain combine a b -o a", capsys)[0] == 0
    assert len((folder / "a").read_bytes()) > len(before)
    assert outcome("gate a --from 3.5 --to 4.3", capsys)[0] == 0


def test_a_run_replaces_no_case_and_an_earlier_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.yaml").write_text(CASE)
    run = f"run {shipped() / 'policies'} --spark model -o"
    code, _, err = outcome(f"{run} c.yaml", capsys)
    assert (code, (folder / "c.yaml").read_text()) == (2, CASE)
    assert err.endswith("\nconformance: c.yaml exists and is not a results file; choose another name, or remove it\n")
    assert [outcome(f"{run} mine.jsonl", capsys)[0] for _ in range(2)] == [0, 0]
    assert sorted(path.name for path in folder.iterdir()) == ["c.yaml", "mine.jsonl", "r"]


def _no_space(path: Path, _target: object) -> None:
    raise OSError(28, os.strerror(28), str(path))


def test_what_a_stranger_wrote_is_shown_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note, a reason and an error with commands for the terminal and for GitHub, in every command that shows them."""
    hostile = "\x1b]0;owned\x07\u202e\r::error::a\n::error::b\n\n\n## heading\n##[error]c\x9b"
    a.results(folder / "h", {"f/a": {"3.5.9": a.LOST, "4.3.0": a.CALM}, "f/b": {"3.5.9": a.REFUSED, "4.3.0": a.CALM}})
    lines = records(folder / "h")
    for line in lines:
        if line["record"] == "cell":
            line["notes"] = [hostile]
            for step in line["observation"]["steps"] if line["observation"] else ():
                if step["error"]:
                    step["error"] |= {"message": hostile, "classes": [hostile]}
            if line["status"] == "violates":
                line["findings"] = line["findings"][:1]
                line["findings"][0]["place"]["name"] = hostile
    (folder / "h").write_text(forged(lines))
    commands = ("maintain combine h", "gate h --from 3.5.9 --to 4.3.0", "maintain diff h h", "case export junit h",
                "case export summary h", "gate h --from 3.5.9 --to 4.3.0 --json",
                "case export summary h --from 3.5.9 --to 4.3.0", "case export json h --cases c")  # fmt: skip
    (folder / "c").mkdir()
    (folder / "c" / "a.yaml").write_text(CASE)
    for command in commands:
        code, out, err = outcome(command, capsys)
        assert code in (0, 1), (command, err)
        text = out + err
        assert [char for char in text if char in "\x1b\x07\u202e\x9b\r"] == [], command
        assert [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line] == [], command
    # Rich itself drops the bell and the carriage return.
    told = outcome("maintain combine h", capsys)[1].splitlines()
    assert {r"  note: \x1b]0;owned\u202e::error::a", r"\    ::error::b", r"    #\#[error]c\x9b"} <= {*told}
    # No blank line ends the block of HTML that holds the notes, so nothing in it is a heading.
    summary = outcome("case export summary h", capsys)[1]
    for block in re.findall(r"<details>.*?</details>", summary, re.DOTALL):
        assert "\n\n" not in block
    annotations = outcome("case export annotations h", capsys)[1]
    assert all(
        line.startswith(("::error file=", "::notice file=", "::warning file=")) for line in annotations.splitlines()
    )
    assert [char for char in annotations if char in "\x1b\x07\u202e\x9b\r"] == []
