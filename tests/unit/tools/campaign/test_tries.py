"""A few tries of the weekly campaign, that it notices each fall, and that it goes on where it stopped."""

from pathlib import Path
from unittest.mock import patch

import pytest

from tools.campaign import jobs, results
from tools.campaign.tries import Answer, Try, carried_out, drawn, read, table


@pytest.mark.parametrize("number", range(16))
def test_no_falsified_results_are_green(number: int) -> None:
    assert [one for one in results.attempt(20, number) if one.fell] == []


@pytest.mark.parametrize(
    "said", [Answer(0, "", ""), Answer(3, "", "Traceback …"), Answer(3, "", "a defect of this program: x")]
)
def test_a_green_answer_or_one_that_nobody_foresaw_is_a_fall(said: Answer) -> None:
    with patch.object(results, "asked", lambda *_: (said, said.code == 0)):
        fell = [one.fell for number in range(3) for one in results.attempt(20, number)]
    assert len(fell) > 1
    assert all(fell)


def test_a_base_is_green_at_every_door_that_compares_or_judges_it(tmp_path: Path) -> None:
    path = results.written(tmp_path / "r.jsonl", results.base(drawn(20, 0)))
    doors = {
        name: door for name, door in results.EVERY.items() if name != "gate --accept"
    }  # which adds a stale acceptance
    assert [name for name, door in doors.items() if not results.asked(door, path, path, "accepted: []")[1]] == []


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "tries.jsonl"
    asked: list[int] = []

    def attempt(number: int) -> list[Try]:
        asked.append(number)
        return [Try(number, "gate", "status", "exit 0" if number == 2 else "")]

    assert len([*carried_out(file, range(2), attempt)]) == 2
    file.write_text(file.read_text() + '{"number": 2, "do')
    whole = [*carried_out(file, range(4), attempt)]
    assert asked == [0, 1, 2, 3]
    assert [one.number for one in read(file)] == [0, 1, 2, 3]
    assert table(whole).splitlines()[2:] == [
        "| gate | 4 | 3 | 1 |",
        "| all | 4 | 3 | 1 |",
        "fell: 2, status, gate: exit 0",
    ]


def test_every_way_is_a_program_that_python_reads() -> None:
    ways = [*jobs.OF_ROWS, *jobs.OF_WRITER]
    programs = [jobs.Program(tuple((kind, way) for kind in jobs.KINDS)) for way in ways]
    programs += [jobs.Program((("stateless", "none"),), whole) for whole in jobs.OF_PROGRAM]
    for made in programs:
        compile(made.text, "job.py", "exec")
    assert len(ways) + len(jobs.OF_PROGRAM) > 30
