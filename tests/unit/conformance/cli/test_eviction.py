"""``conformance eviction``, and the page that shows it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import answer_of

PAGE = (Path(__file__).parents[4] / "docs" / "specification.md").read_text(encoding="utf-8")


def typed(monkeypatch, capsys, line):
    """Exit code, standard output and standard error of a command line."""
    program, *arguments = shlex.split(line)
    monkeypatch.setattr("sys.argv", [program, *arguments])
    return answer_of(capsys, *arguments)


def test_the_page_shows_what_the_command_prints(monkeypatch, capsys):
    (line,) = re.findall(r"```sh\n(conformance eviction .*)\n```", PAGE)
    (shown,) = re.findall(r"```text\n(left: .*?)```", PAGE, re.DOTALL)
    assert typed(monkeypatch, capsys, line) == (0, shown, "")


def test_the_python_of_the_page_runs(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out == "300000\n"


def test_programs_get_milliseconds(monkeypatch, capsys):
    line = 'conformance eviction "a = b" --left "a 1 hour" --right b --at 01:00 --json'
    code, out, _ = typed(monkeypatch, capsys, line)
    assert code == 0
    found = json.loads(out)
    assert found["spark"] == "4.3.0"
    left = {"side": "left", "column": "a", "at": 3_600_000, "watermark": 3_600_000, "seen": {"a": 7_200_000}}
    assert found["sides"][0] == left


def test_the_version_counts(monkeypatch, capsys):
    """Equal terms of an inequality counted once up to 4.1: cases/join-delays/equal-intervals-on-both-sides-of-a-range.subtracted-twice."""
    condition = '"a > b - INTERVAL 10 SECONDS - INTERVAL 10 SECONDS"'
    found = {}
    for spark in ("4.1", "4.3"):
        line = f'conformance eviction {condition} --left "a 0 seconds" --right "b 0 seconds" --spark {spark} --json'
        found[spark] = json.loads(typed(monkeypatch, capsys, line)[1])["sides"][0]["watermark"]
    assert found["4.3"] - found["4.1"] == 10_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('--left "a 1 hou" --right b', "'1 hou' is not a delay: write 'a 10 minutes'"),
        ('--left "a 1 hour" --right b --at noon', "write a time such as 12:00"),
        ('--left "a 1 hour" --right b --spark 9.9', "'9.9' is not a version of Spark"),
        ("--left a", "Missing option '--right'"),
    ],
)
def test_wrong_options_are_said_in_a_line(monkeypatch, capsys, options, said):
    code, out, err = typed(monkeypatch, capsys, f'conformance eviction "a > b" {options}')
    assert (code, out) == (2, "")
    assert said in err
