"""Measures what docs/performance.md says: ``python -m benchmarks [--only TEXT] [--by-turns] [--turns 3]``.

``figures.yaml`` lists the figures of each table: a command, and what it measured with the release, revision, day and machine. A command
of the product with ``of`` runs by turns with that revision, and the least CPU time of each counts; of a program in this folder the end
of its output counts. The page is written again after each figure. A figure that was measured before this release is marked. Fails if a
command takes a tenth more of the earlier revision's CPU time than when it was last measured.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from benchmarks.results_at_scale import Cost, cost, earlier_tree

ROOT = Path(__file__).parents[1]
FIGURES = Path(__file__).with_name("figures.yaml")
PAGE = ROOT / "docs" / "performance.md"
MOST = 1.1
"""The share of its last ratio that a command may have."""
_MB = 1 << 20
_WRONG_USAGE = 2
"""The exit code of a command that ended without doing anything."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure the figures whose command has this text")
    parser.add_argument("--by-turns", action="store_true", help="measure only what runs by turns with a revision")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    tables, slower = _tables(), []
    with tempfile.TemporaryDirectory() as name:
        figures = [figure for table in tables for figure in table["figures"] if options.only in figure["command"]]
        for figure in (figure for figure in figures if "of" in figure or not options.by_turns):
            before = figure.get("ratio")
            _measure(figure, Path(name), options.turns)
            print(f"{figure['command']}: {figure['measured']}", flush=True)
            if before is not None and figure["ratio"] > MOST * before:
                slower.append(f"{figure['command']} takes {figure['ratio']:.2f} of {figure['of']}, {before:.2f} before")
            text = yaml.safe_dump(tables, sort_keys=False, allow_unicode=True, width=120)
            FIGURES.write_text(text, encoding="utf-8")
            PAGE.write_text(page(), encoding="utf-8")
    print("\n".join(slower))
    return 1 if slower else 0


def page() -> str:
    """Return the page with its tables as the figures make them."""
    text = PAGE.read_text(encoding="utf-8")
    for table in _tables():
        rows = "\n".join(figure_rows(table["figures"]))
        section = re.compile(rf"(^## {re.escape(table['heading'])}\n.*?)^\|.*?(?=\n\n|\n?\Z)", re.MULTILINE | re.DOTALL)
        text = section.sub(lambda found: found[1] + rows, text, count=1)  # noqa: B023
    return text


def _tables() -> list[Any]:
    tables: list[Any] = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    return tables


def figure_rows(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| what | measured | when | command |"
    yield "|---|---|---|---|"
    for figure in (figure for figure in figures if figure["measured"]):
        at = figure.get("at")
        when = f"{at['revision']}, {at['date']}, {at['machine']}" if at else ""
        if not at or at["release"] != version("watermark-conformance"):
            when = f"**before this release**{f': {when}' if when else ''}"
        said = f". {figure['profile']}" if "profile" in figure else ""
        yield f"| {figure['what']} | {figure['measured']}{said} | {when} | `{figure['command']}` |"


def _measure(figure: dict[str, Any], folder: Path, turns: int) -> None:
    program, *words = _words(figure["command"])
    if program == "python":
        done = subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        last = done.stdout.splitlines()[-figure.get("lines", 1) :]
        figure["measured"] = "<br>".join(re.sub(" +", " ", line).strip() for line in last)
    elif program != "conformance":
        begun = time.monotonic()
        subprocess.run([program, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        figure["measured"] = f"{(time.monotonic() - begun) / 60:.0f} min"
    elif "of" not in figure:
        alone = cost(ROOT, words, folder)
        figure["measured"] = f"{alone.took:.1f} s, {alone.seconds:.1f} s of CPU time"
    else:
        earlier = _words(figure.get("earlier", figure["command"]))[1:]
        after, before = _by_turns(words, earlier, figure["of"], folder, turns)
        figure["ratio"] = round(after.seconds / before.seconds, 2)
        figure["measured"] = (
            f"{after.seconds:.2f} s of CPU time, {after.most_bytes / _MB:.0f} MB; "
            f"{figure['ratio']:.2f} of the {before.seconds:.2f} s of {figure['of']}"
        )
    figure["at"] = {
        "release": version("watermark-conformance"),
        "revision": _said("git", "rev-parse", "--short=8", "HEAD"),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": _machine(),
    }


def _words(command: str) -> list[str]:
    """Return the words of a command for any folder: the cases of this checkout, also for an earlier revision."""
    return [str(ROOT / word) if word.startswith("cases/") else word for word in shlex.split(command)]


def _by_turns(
    words: Sequence[str], earlier: Sequence[str], revision: str, folder: Path, turns: int
) -> tuple[Cost, Cost]:
    """Return the turn of this checkout and that of an earlier revision with the least CPU time; ``earlier``: how that says the same."""
    tree = earlier_tree(revision, folder)
    costs = [(cost(ROOT, words, folder), cost(tree, earlier, folder)) for _ in range(turns)]
    if any(each.exit_code == _WRONG_USAGE for turn in costs for each in turn):
        raise SystemExit(f"{shlex.join(words)}: this checkout or {revision} has no such command")
    after, before = (min(own, key=lambda one: one.seconds) for own in zip(*costs, strict=True))
    return after, before


def _machine() -> str:
    known = re.search("^model name\\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{len(os.sched_getaffinity(0))} × {known[1] if known else os.uname().machine}"


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
