"""Whatever fails while a command writes: each file is as before or complete, and the command says which file it could not write."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import answer_of
from tests.support.faults import Faults
from tests.support.runs import written

CASE = (Path(__file__).parents[3] / "support" / "miniature" / "cases" / "late-drops" / "windows.yaml").read_text()
COMMANDS = {
    "combine": "maintain combine {results} -o {out}/combined.jsonl",
    "combine-compressed": "maintain combine {results} -o {out}/combined.jsonl.xz",
    "export": "case export junit {results} -o {out}/junit.xml",
    "gate": "gate {results} --from 3.5.9 --to 4.3.0 --cases {cases} --draft {out}/accepted.yaml",
    "new": "case new {out}/my/case.yaml",
    "record": "case record {out}/case.yaml --results {results} --spark 3.5.9 --replace",
    "report": "report {results} --cases {cases} --output {out}/site",
}
WITHOUT_OLD = ("new", "record")
MOST_RUNS = 20
"""Where a command does more than this many operations, every second, third … of them fails."""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def each_fault(write: Callable[[], object], faults: Faults, before: dict[str, bytes]) -> int:
    """Write once for each operation, which fails; what is there afterwards is old or new. Returns how often it was tried."""
    out = faults.folder

    def written_with(failing: int | None) -> dict[str, bytes]:
        shutil.rmtree(out)
        for name, content in before.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(content)
        with faults.injected(failing):
            write()
        return contents(out)

    after = written_with(None)
    failing = range(0, len(faults.done), -(-len(faults.done) // MOST_RUNS))
    assert before != after
    for number in failing:
        there = written_with(number)
        assert before.keys() <= there.keys() <= after.keys(), faults.done
        for name, content in there.items():
            assert content in (before.get(name), after[name]), (name, faults.done)
    return len(failing)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_is_old_or_new_and_the_command_fails(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    for folder in ("out", "cases"):
        (tmp_path / folder).mkdir()
    for file in (out / "case.yaml", tmp_path / "cases" / "other.yaml"):
        file.write_text(CASE, encoding="utf-8")
    cases = ("case", "late/b")
    written(tmp_path / "old.jsonl", cases)
    written(tmp_path / "new.jsonl", cases, statuses={("late/b", "spark-4.3.0"): "violates"})
    monkeypatch.chdir(tmp_path)
    faults = Faults(monkeypatch, out)

    def run(results: str) -> None:
        command = COMMANDS[name].format(results=tmp_path / results, cases=tmp_path / "cases", out=out)
        code, _, said = answer_of(capsys, *command.split())
        if faults.failing is None:
            assert code in (0, 1), said
        else:
            assert (code, said.count("\n")) == (3, 1), (faults.done, said)
            assert said.startswith(f"conformance: cannot write {out}/")
            assert said.endswith(": No space left on device\n")

    if name not in WITHOUT_OLD:
        run("old.jsonl")
    assert each_fault(lambda: run("new.jsonl"), faults, contents(out)) > 5
