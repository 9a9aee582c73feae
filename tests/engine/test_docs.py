"""What the documentation tells people to type, typed, page after page; what an engine has answered on one page is known on the next.

Commands over the smoke cases or the whole suite are typed for one case, in a full run for the smoke cases. The commands of soak.md
and crash-images.md are typed in test_soak and test_crash, which look at what they wrote.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runtimes.containers.daemon import NoDaemon, connect
from tests.support.effort import FULL, full_run_only

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CASE = ROOT / "cases" / "late-drops" / "window-still-open.yaml"
NO_CASES_NAMED = re.compile(r"conformance run( --all)?(?P<more>( (--(spark|runtime|source)|-o) \S+)*)$")
TAGGED = re.compile(r"conformance run (?=--tag smoke)")
FAMILY = ROOT / "cases" / "window-eviction"
"""A family with two smoke cases, for a page that has them in two parts."""
ELSEWHERE = (
    "docs/add-a-spark-version.md",
    "docs/ci.md",
    "docs/containers.md",
    "docs/kafka.md",
    "docs/reference-model.md",
    "docs/tables.md",
)
ELSEWHERE += (
    "conformance run",
    "conformance maintain specification -o specification",
)
"""Pages and commands that are typed in a full run: other tests of every run show what they do, on other versions or with fewer cases; of
the report, tests/browser opens it and tests/unit/reports/test_docs.py types the command for a small one; test_smoke.py types that of the
README without options."""
NEEDS_A_DAEMON = re.compile(r"--runtime container|targets clean")


@pytest.fixture(autouse=True)
def nothing_known_yet(tmp_path_factory, monkeypatch):
    """Whoever types one page after the other has what the engines answered on the pages before, whichever worker asked them."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    monkeypatch.setenv("CONFORMANCE_ANSWERS", str(folder / "answers-of-the-pages.sqlite"))


def blocks():
    """Commands that stand together, for one may use what another made."""
    for page in DOCS:
        if page.name in ("soak.md", "crash-images.md"):
            continue
        for block in re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            lines = [line.strip() for line in block.strip().splitlines()]
            name = str(page.relative_to(ROOT))
            marks = [full_run_only] if name in ELSEWHERE or lines[0] in ELSEWHERE else []
            yield pytest.param(lines, id=f"{name}: {lines[0][:60]}", marks=marks)


def run(command, folder):
    programs = str(Path(sys.executable).parent)
    environ = {**os.environ, "PATH": programs + os.pathsep + os.environ["PATH"]}
    return subprocess.run(command, shell=True, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("lines", [*blocks()])
def test_commands_of_the_documentation(lines, tmp_path):
    if any(NEEDS_A_DAEMON.search(line) for line in lines):
        try:
            connect()
        except NoDaemon as error:
            if os.environ.get("CONFORMANCE_REQUIRE_DAEMON"):
                raise
            pytest.skip(str(error))
    for command in lines:
        if ".venv/bin/pytest" in command:
            # It is the command that runs this very test; that CI and the README have the same one is all there is to see.
            assert "<!-- the test command -->" in (ROOT / ".ci" / "run").read_text()
            continue
        # The package is installed where this test runs, and the clone must not be littered.
        command = command.removeprefix("pip install -e . && ").replace(" cases/", f" {ROOT / 'cases'}/")
        if run_of_the_suite := NO_CASES_NAMED.fullmatch(command):
            command = f"conformance run{run_of_the_suite['more']}" + ("" if FULL else f" {CASE}")
        elif not FULL:
            command = TAGGED.sub(f"conformance run {FAMILY} ", command)
        done = run(command, tmp_path)
        # The versions that a page compares differ, or there would be nothing to show.
        assert done.returncode == ("conformance gate" in command), done.stdout + done.stderr


@full_run_only
def test_the_ten_lines_of_tox_work_in_a_repository_of_ones_own(tmp_path):
    page = (ROOT / "docs" / "run-it-with-tox.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    assert len([line for line in text.splitlines() if line]) <= 10
    (tmp_path / "tox.ini").write_text(text.replace("    watermark-conformance\n", f"    {ROOT}\n"))
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "mine.yaml").write_text((ROOT / "cases/late-drops/window-still-open.yaml").read_text())
    done = run(f"{sys.executable} -m tox run -e spark35", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
