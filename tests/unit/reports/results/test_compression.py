"""Compressed results files: written and read by their suffix, the same bytes for the same results, and bounded."""

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import reports.results.compression as compression
from conformance.cli.main import app
from conformance.core.output_file import CannotWriteFile, OtherContent
from reports.results import reading
from reports.results.errors import NotDecompressed, NotJson, UnusableResults
from reports.results.published import BASELINES, PATCHES, UPGRADES, published
from reports.results.reading import Results
from reports.results.writing import ResultsWriter, is_complete
from tests.support.runs import cell, header, written

KILLED = """
import os, signal, sys
from pathlib import Path
from reports.results.writing import ResultsWriter
from tests.support.runs import cell, header
writer = ResultsWriter(Path(sys.argv[1]), header(("late/a",), ("spark-3.5.9",)))
writer.write(cell("late/a", "spark-3.5.9"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_holds_what_the_plain_file_holds(tmp_path: Path) -> None:
    plain, packed = written(tmp_path / "r.jsonl"), written(tmp_path / "r.jsonl.xz")
    assert lzma.decompress(packed.read_bytes()) == plain.read_bytes()
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["r.jsonl", "r.jsonl.xz"]
    one, other = Results.read(plain), Results.read(packed)
    assert (one.header, one.footer, one.cells) == (other.header, other.footer, other.cells)
    assert [each.observation for each in one.cells] == [each.observation for each in other.cells]


def test_what_xz_wrote_is_read(tmp_path: Path) -> None:
    """Any preset, and several streams in a row."""
    content = written(tmp_path / "r").read_bytes()
    half = content.index(b"\n") + 1
    path = tmp_path / "r.xz"
    path.write_bytes(lzma.compress(content[:half], preset=9) + lzma.compress(content[half:], preset=0))
    assert Results.read(path).cells == Results.read(tmp_path / "r").cells


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_pipe_is_read_once_and_as_it_is_named(tmp_path: Path, suffix: str) -> None:
    path, pipe = written(tmp_path / f"r{suffix}"), tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["cp", str(path), str(pipe)])
    cells = Results.read(pipe).cells
    assert (writer.wait(), [one.observation is not None for one in cells]) == (0, [True] * 4)
    assert cells == Results.read(path).cells


@pytest.mark.parametrize("share", [0.0, 0.2, 0.9, 0.999])
def test_a_file_that_ends_too_early_is_named(tmp_path: Path, share: float) -> None:
    path = written(tmp_path / "r.xz")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(
        NotDecompressed, match=r"r\.xz: the file cannot be decompressed \(it ends too early\); try"
    ) as it:
        Results.read(path)
    assert (it.value.exit_code, "\n" in str(it.value)) == (3, False)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "r.xz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    for damaged in (bytes(content), written(tmp_path / "plain").read_bytes(), b"\0" * 100):
        path.write_bytes(damaged)
        with pytest.raises(NotDecompressed, match=r"cannot be decompressed \((Corrupt|Input format).*\)") as found:
            Results.read(path)
        assert "\n" not in str(found.value)
        assert not is_complete(path)


def test_how_much_it_may_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compression.MOST_DECOMPRESSED == 1_073_741_824
    size = written(tmp_path / "r").stat().st_size
    path = written(tmp_path / "r.xz")
    monkeypatch.setattr(compression, "MOST_DECOMPRESSED", size)
    assert len(Results.read(path).cells) == 4
    monkeypatch.setattr(compression, "MOST_DECOMPRESSED", size - 1)
    with pytest.raises(NotDecompressed, match=rf"it holds more than {size - 1:,} bytes"):
        Results.read(path)


def test_how_much_memory_it_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.xz"
    path.write_bytes(lzma.compress(written(tmp_path / "r").read_bytes(), preset=9))
    assert len(Results.read(path).cells) == 4
    monkeypatch.setattr(compression, "MOST_MEMORY", 1 << 20)
    with pytest.raises(NotDecompressed, match="Memory usage limit exceeded"):
        Results.read(path)


def test_lines_without_content_end_soon(tmp_path: Path) -> None:
    """Each takes time, and compressed none takes room."""
    content = written(tmp_path / "r").read_bytes()
    path = tmp_path / "r.xz"
    path.write_bytes(lzma.compress(b"\n" * reading.MOST_BLANK + content))
    assert len(Results.read(path).cells) == 4
    path.write_bytes(lzma.compress(b"\n" * 50_000_000 + content, preset=0))
    with pytest.raises(NotJson, match=r"line 10001 is not JSON \(more than 10,000 lines are empty\)"):
        Results.read(path)


def test_an_interrupted_run_leaves_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.xz"
    for where in (path, tmp_path / "r.jsonl.xz.part"):
        with pytest.raises(KeyboardInterrupt), ResultsWriter(path, header(("late/a",), ("spark-3.5.9",))):
            raise KeyboardInterrupt
        with pytest.raises(UnusableResults, match="interrupted after 0 of 1 cells"):
            Results.read(where)
        # The second time there is a complete file to keep.
        written(path)
        assert is_complete(path)


def test_a_killed_run_leaves_its_cells_beside(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.xz"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    with pytest.raises(UnusableResults, match=r"but r\.jsonl\.xz\.part of a run that has not finished"):
        Results.read(path)
    with pytest.raises(UnusableResults, match="interrupted after 1 of 1 cells"):
        Results.read(tmp_path / "r.jsonl.xz.part")


def test_only_results_are_replaced(tmp_path: Path) -> None:
    other = tmp_path / "letters.xz"
    other.write_bytes(lzma.compress(b"Dear reader"))
    with pytest.raises(OtherContent, match="is not a results file"):
        written(other)
    assert lzma.decompress(other.read_bytes()) == b"Dear reader"
    other.write_bytes(b"\xfd7zXZ\x00 and nothing of it")
    with pytest.raises(OtherContent):
        written(other)


def test_a_pipe_takes_no_compressed_results(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xz")
    with pytest.raises(CannotWriteFile, match="only a regular file can be compressed"):
        ResultsWriter(tmp_path / "pipe.xz", header(("late/a",), ("spark-3.5.9",)))


def test_every_command_takes_them(tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl.xz", targets=("spark-3.5.9",))
    other = written(tmp_path / "other.jsonl", targets=("spark-4.3.0",))
    both = tmp_path / "both.jsonl.xz"

    def done(*arguments: str | Path) -> str:
        found = CliRunner().invoke(app, [*map(str, arguments)])
        assert found.exit_code == 0, found.output
        return found.output

    done("maintain", "combine", one, other, "-o", both)
    assert both.read_bytes().startswith(b"\xfd7zXZ\x00")
    assert Results.read(both).cells == Results.read_all([one, other]).cells
    assert "no change" in done("gate", both, "--from", "3.5.9", "--to", "4.3.0")
    done("maintain", "diff", both, both)
    done("report", both, "-o", tmp_path / "site")
    assert (tmp_path / "site" / "index.html").is_file()
    assert "<testsuites" in done("case", "export", "junit", both)


def test_the_published_results_are_compressed() -> None:
    files = sorted(path.name for path in BASELINES.iterdir() if not path.is_dir())
    assert files == ["checkpoints.json", *(path.name for path in published()), "pairs.xz", "query-needs.xz"]
    assert {path.suffix for folder in (PATCHES, UPGRADES) for path in folder.iterdir()} == {".xz"}
    assert "lines.jsonl.xz" in files


def test_cells_are_the_same_in_a_process_of_their_own(tmp_path: Path) -> None:
    """Pages are drawn by several processes, which share the copy that this one has made."""
    first, *rest = Results.read(written(tmp_path / "r.xz")).cells
    assert first.observation == cell("late/a", "spark-3.5.9").observation
    for one in rest:
        if (child := os.fork()) == 0:
            os._exit(0 if one.observation == cell(one.case, one.target).observation else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
