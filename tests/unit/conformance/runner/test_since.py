"""For any change of files that cases read: what `--since` selects, run, gives the verdicts of a run of all cases.

Both selections run, in a fake engine whose answers depend on the rows, the case and the modules that it names.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conformance.language.source import InvalidCase
from conformance.runner.cases import NothingChanged, RunOptions, plan_run
from harness.runtimes.options import RuntimeOptions
from harness.runtimes.own_code import OwnCode
from tests.support.effort import number
from tests.support.miniature import engine
from tests.support.miniature import runtime as miniature
from tests.unit.conformance.runner.test_cases import recorded

PLAIN = """\
title: A window of two rows
strength: observed
behaviour: [late-predicate]
streams:
  events: event_time TIMESTAMP, count INT
query:
  - from: events
  - withWatermark: [event_time, 25 minutes]
  - groupBy: ["window(event_time, '10 minutes')"]
    agg: [sum(count) AS total]
  - select: [window.start, window.end, total]
steps:
  - {add: {events: [["12:00", 1]]}}
  - {add: {events: [["12:35", 1]]}, expect: {rows: [["12:00", "12:10", 1]]}}
"""


def reading(file):
    return PLAIN.replace('[["12:00", 1]]', f"{{file: {file}}}")


CALLING = PLAIN.replace(
    PLAIN[PLAIN.index("query:") : PLAIN.index("steps:")], 'query: {call: "jobs:mine", with: [events]}\n'
)
FILES = {
    ".gitignore": "ignored*\n__pycache__\n",
    "jobs.py": "import helpers, ignored\nFACTOR = helpers.FACTOR * ignored.FACTOR\n",
    "writers.py": "from pathlib import Path\nFACTOR = int(Path(__file__).with_name('factor.csv').read_text())\n",
    "helpers.py": "FACTOR = 1\n",
    "ignored.py": "FACTOR = 1\n",
    "factor.csv": "1\n",
    "first/plain.yaml": PLAIN,
    "first/reading.yaml": reading("rows/a.jsonl"),
    "first/through-a-link.yaml": reading("rows/link.jsonl"),
    "first/of-a-matrix.yaml": "matrix: {day: [a, b]}\n" + reading("rows/$(day).jsonl"),
    "first/ignored-rows.yaml": reading("rows/ignored.jsonl"),
    "first/calling.yaml": CALLING,
    "first/writing.yaml": PLAIN.replace("steps:", 'sink: "writers:write"\nsteps:'),
    "first/texts/1.txt": PLAIN,
    "first/texts/2.txt": PLAIN.replace('"12:10", 1', '"12:10", 2'),
    **{f"first/rows/{name}.jsonl": '{"event_time": "12:00", "count": 1}\n' for name in ("a", "b", "ignored")},
    "first/rows/c.jsonl": '{"event_time": "12:00", "count": 2}\n',
    "second/plain.yaml": PLAIN.replace('"12:10", 1', '"12:10", 2'),
}
LINKS = {"cases": "first", "first/linked.yaml": "texts/1.txt", "first/rows/link.jsonl": "a.jsonl"}
CASES = sorted(name for name in FILES if name.startswith("first/") and name.endswith(".yaml"))
ROWS = sorted(name for name in FILES if name.endswith(".jsonl"))
MODULES = ["jobs.py", "writers.py", "helpers.py", "ignored.py"]
TARGETS = {"cases": ["first", "second"], "first/linked.yaml": ["texts/1.txt", "texts/2.txt", "plain.yaml"]}
TARGETS["first/rows/link.jsonl"] = ["a.jsonl", "b.jsonl", "c.jsonl", "gone.jsonl"]
ANY = st.sampled_from([*FILES, *LINKS])
COUNTS = st.integers(1, 3)
CHANGES = st.one_of(
    st.tuples(st.just("rows"), st.sampled_from(ROWS), COUNTS),
    st.tuples(st.just("expects"), st.sampled_from([*CASES, "first/texts/1.txt"]), COUNTS),
    st.tuples(st.just("factor"), st.sampled_from([*MODULES, "factor.csv"]), COUNTS),
    st.tuples(st.just("deletes"), ANY, st.just("")),
    st.tuples(st.just("renames"), ANY, st.sampled_from(["renamed", "ignored-too"])),
    st.tuples(st.just("copies"), st.sampled_from(CASES), st.sampled_from(["new", "ignored-new"])),
    st.sampled_from([("links", link, target) for link in LINKS for target in TARGETS[link]]),
    st.tuples(st.just("comments"), st.sampled_from(CASES), st.just("")),
    st.tuples(st.just("hides"), st.sampled_from(["*.jsonl", "*.yaml", "*.py", "*"]), st.just("")),
    st.tuples(
        st.sampled_from(["--assume-unchanged", "--skip-worktree"]),
        st.sampled_from([*CASES, *ROWS, *MODULES]),
        st.just(""),
    ),
)


def git(folder, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    root = tmp_path_factory.mktemp("base") / "repository"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    git(root.parent, "init", "-q", "--template=", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a state")
    git(root, "repack", "-adq")  # few files, because each draw copies them
    git(root, "prune-packed")
    git(root, "tag", "before")
    return root


@pytest.fixture(scope="module")
def verdicts_before(base):
    before = verdicts(base, None)
    assert set(before.values()) == {"conforms"}
    return before


def change(root, how, name, what):
    path = root / name
    if how == "links":
        path.unlink(missing_ok=True)
        path.symlink_to(what)
    elif how == "hides":
        (root / ".gitignore").write_text(f"{FILES['.gitignore']}{name}\n")
    elif how == "copies":
        shutil.copy(path, path.with_name(f"{what}{path.suffix}")) if path.is_file() else None
    elif how.startswith("--"):
        subprocess.run(["git", "-C", str(root), "update-index", how, name], check=False, capture_output=True)
    elif not os.path.lexists(path):
        pass  # an earlier change of the same draw has taken it away
    elif how == "rows":
        path.write_text(f'{{"event_time": "12:00", "count": {what}}}\n')
    elif how == "expects":
        path.write_text(path.read_text().replace('"12:10", 1', f'"12:10", {what}'))
    elif how == "factor":
        path.write_text(f"{what}\n" if path.suffix == ".csv" else f"FACTOR = {what}\n")
    elif how == "comments":
        path.write_text(path.read_text() + "# a comment\n")
    elif how == "deletes":
        path.unlink()
    elif how == "renames":
        path.rename(path.with_name(f"{what}{path.suffix}"))


def verdicts(root, since):
    """The status of each case that is selected and run; an error's kind if none can run."""
    options = RunOptions(
        output=root / "none.jsonl",
        command="",
        paths=[root / "cases"],
        spark=["3.5.9"],
        since=since,
        runtime=RuntimeOptions(own_code=OwnCode.at([root])),
    )
    try:
        plan = plan_run(options)
    except NothingChanged:
        return {}
    except InvalidCase:
        return "invalid"
    work = root.parent / "work"
    work.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(miniature, "run", lambda request, mode, say: answered(root, request, mode, say))
        engines = miniature.MiniatureRuntime(work, faults={})
        ran = recorded(engines, plan.cases, allow_code=True, step_timeout=20).verdicts
    return {id: verdict.status for id, verdict in ran.items()}


def answered(root, request, mode, say):
    """What the miniature answers; the modules that the case names change what it counts."""
    named = [module for module in ("jobs", "writers") if f'"{module}:' in json.dumps(request)]
    try:
        factors = [factor(root, module) for module in named]
    except (ImportError, OSError, ValueError, AttributeError) as error:
        say(json.dumps({"kind": "failed", "message": str(error), "case": request["case"]}))
        return
    for row in (row for step in request["steps"] for batch in step["batches"] for row in batch["events"][0]):
        for of_module in factors:
            row["count"] *= of_module
    engine.run(request, mode, say)


def factor(root, module):
    for name in MODULES:
        sys.modules.pop(Path(name).stem, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root))
        patch.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module(module).FACTOR


@given(st.lists(CHANGES, min_size=1, max_size=3), st.sampled_from(["", "staged", "committed"]))
@settings(
    max_examples=number(12, 1000), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@example([("links", "cases", "second")], "").via("the folder is a link, and leads elsewhere")
@example([("links", "first/linked.yaml", "texts/2.txt")], "committed").via("the case is a link")
@example([("links", "first/rows/link.jsonl", "c.jsonl")], "").via("the file of rows is a link")
@example([("factor", "ignored.py", 2)], "").via("a module that git ignores")
@example([("--assume-unchanged", "first/rows/a.jsonl", ""), ("rows", "first/rows/a.jsonl", 2)], "").via(
    "git is to look away"
)
def test_selecting_and_running_gives_the_verdicts_of_running_all(
    base, verdicts_before, tmp_path_factory, changes, then
):
    root = tmp_path_factory.mktemp("draw") / "repository"
    shutil.copytree(base, root, symlinks=True)
    for how, name, what in changes:
        change(root, how, name, what)
    if then:
        git(root, "add", "-A")
    if then == "committed":
        git(root, "commit", "-q", "--allow-empty", "-m", "another state")
    of_all, of_selected = verdicts(root, None), verdicts(root, "before")
    if isinstance(of_all, dict) and isinstance(of_selected, dict):
        # A case that is not selected keeps the verdict of the revision; a case without that has no verdict.
        of_selected = {id: of_selected.get(id, verdicts_before.get(id)) for id in of_all}
    assert of_selected == of_all
    shutil.rmtree(root.parent)
