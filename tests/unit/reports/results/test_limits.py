"""How much of a results file is read, and what its lines may be."""

from pathlib import Path

import pytest

import reports.results.reading as reading
from reports.results.errors import NotARecord, NotJson, UnusableResults
from reports.results.reading import Results
from tests.support.runs import written


def test_a_file_at_the_limit_is_read_and_a_longer_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "r")
    size = path.stat().st_size
    monkeypatch.setattr(reading, "MOST_BYTES", size)
    assert len(Results.read(path).cells) == 4
    monkeypatch.setattr(reading, "MOST_BYTES", size - 1)
    with pytest.raises(UnusableResults, match=rf"it has {size:,} bytes; at most {size - 1:,} are read"):
        Results.read(path)


def test_a_line_at_the_limit_is_read_and_a_longer_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "r")
    longest = max(map(len, path.read_bytes().splitlines(keepends=True)))
    monkeypatch.setattr(reading, "LONGEST_LINE", longest)
    assert len(Results.read(path).cells) == 4
    monkeypatch.setattr(reading, "LONGEST_LINE", longest - 1)
    with pytest.raises(NotJson, match=rf"it has more than {longest - 1:,} bytes") as caught:
        Results.read(path)
    lines = path.read_bytes().splitlines(keepends=True)
    number = 1 + next(number for number, line in enumerate(lines) if len(line) == longest)
    assert caught.value.problem.startswith(f"line {number} ")


def test_a_folder_is_not_a_results_file(tmp_path: Path) -> None:
    with pytest.raises(UnusableResults, match=r"the file cannot be read \(Is a directory\)"):
        Results.read(tmp_path)


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "r")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("\n" + "\n \n".join(lines))
    assert len(Results.read(path).cells) == 4
    path.write_text("\n" + "\n".join([*lines[:2], lines[1].replace('"status":"conforms"', '"status":"fine"')]))
    with pytest.raises(NotARecord, match=r"line 6 is not a valid record: cell\.status: Input should be"):
        Results.read(path)


def test_too_deep_nesting_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(UnusableResults, match=r"line 1 is not JSON \(nested too deeply\)"):
        Results.read(path)


@pytest.mark.parametrize("written_format", ["5", '"6"', "null", "2.5"])
def test_a_header_that_names_no_format_is_judged_as_a_record(tmp_path: Path, written_format: str) -> None:
    path = written(tmp_path / "r")
    text = path.read_text().replace('"format":5', f'"format":{written_format},"surprise":1', 1)
    path.write_text(text)
    with pytest.raises(NotARecord, match="line 1 is not a valid record: header"):
        Results.read(path)
