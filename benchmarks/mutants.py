"""Whether the unit tests can see: how many small errors in the code make some unit test fail.

    uv run --with cosmic-ray python benchmarks/mutants.py model --sample 400 --seed 1
    uv run --with cosmic-ray python benchmarks/mutants.py judging gate --output mutants.jsonl

cosmic-ray makes the errors: another operator, a number off by one, `not`, `break`, a decorator less. Annotations, type aliases and
decorators of classes are left out, `is` for another comparison, the `strict` of `zip`, and what is no Python. Each error is one process,
forked after the libraries and cases are loaded, that imports the changed module and runs the fast unit tests of its package until one
fails; no file changes. Prints the score and each survivor. No Spark runs.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import importlib.abc
import importlib.util
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = "tests/unit"
LIMIT_S = 300
"""Longer is an endless loop, which counts as noticed."""


@dataclass(frozen=True)
class Subject:
    """Code that is changed, and the tests that should notice, the fastest first."""

    files: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]
    """Run one tuple after the other. Those that read the published results are left out, for their time."""
    loaded: tuple[str, ...]
    """Modules to load before, none of which imports the code."""


_MODEL = f"{UNIT}/conformance/model"
_FAST = (
    "state_functions",
    "stateful_processors",
    "values",
    "functions",
    "usual_functions",
    "checks",
    "join_bounds",
    "watermark",
    "named_sources",
    "real_time",
    "ordinary_queries",
    "not_predicted",
    "catalogue",
)
_READING = ("evidence", "known_bug", "records", "errors", "together", "limits", "reading", "shards")
SUBJECTS = {
    "model": Subject(
        ("conformance/model/*.py", "conformance/model/catalyst/*.py"),
        (
            (*(f"{_MODEL}/test_{name}.py" for name in _FAST), f"{_MODEL}/catalyst"),
            tuple(f"{UNIT}/conformance/oracle/test_{name}.py" for name in ("prediction", "join_state", "cross_check")),
            tuple(f"{_MODEL}/test_{name}.py" for name in ("query", "rules_read", "wrong_models", "extremes")),
        ),
        ("conformance.suite.discovery", "harness.targets.targets", "hypothesis.strategies", "sqlglot"),
    ),
    "judging": Subject(
        ("conformance/judging/*.py",),
        ((f"{UNIT}/conformance/judging",),),
        ("conformance.suite.discovery", "conformance.model.wrong_models", "hypothesis.strategies"),
    ),
    "account": Subject(
        ("conformance/account/*.py",),
        ((f"{UNIT}/conformance/account/test_explanation.py", f"{UNIT}/conformance/account/test_account.py"),),
        ("conformance.suite.discovery", "conformance.oracle.version_divergence", "hypothesis.strategies"),
    ),
    "results": Subject(
        tuple(f"reports/results/{name}.py" for name in ("reading", "records", "errors", "evidence", "known_bug")),
        (tuple(f"{UNIT}/reports/results/test_{name}.py" for name in _READING),),
        ("conformance.suite.discovery", "conformance.oracle.prediction", "hypothesis.strategies"),
    ),
    "gate": Subject(
        ("reports/analysis/gate.py", "reports/analysis/change.py"),
        (
            tuple(
                f"{UNIT}/reports/analysis/test_{name}.py"
                for name in ("change", "contrast", "gate", "gate_thresholds", "gate_files")
            ),
        ),
        ("conformance.suite.discovery", "conformance.oracle.prediction", "reports.results.reading"),
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One error: the number-th place where an operator of cosmic-ray applies."""

    file: str
    operator: str
    number: int
    line: int
    source: str

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    @property
    def difference(self) -> str:
        before = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        changed = [one for one in difflib.ndiff(before, self.source.splitlines()) if one[0] in "-+"]
        return " → ".join(one[2:].strip() for one in changed)


def mutants(file: str) -> Iterator[tuple[str, int, int]]:
    """Operator, number and line of each error that cosmic-ray can make in a file."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    text = (ROOT / file).read_text(encoding="utf-8")
    without = _types(text)
    tree = get_ast(text)
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if operator.arguments() or name.endswith(("_Is", "_IsNot", "NoOp")):
            continue
        places = (place for node in ast_nodes(tree) for place in operator().mutation_positions(node))
        for number, (start, _) in enumerate(places):
            if not any(first <= tuple(start) < last for first, last in without):
                yield name, number, start[0]


def mutant(file: str, operator: str, number: int, line: int) -> Mutant:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = mutate_code((ROOT / file).read_text(encoding="utf-8"), get_operator(operator)(), number)
    return Mutant(file, operator.removeprefix("core/"), number, line, source)


def _compiles(place: tuple[str, str, int, int]) -> bool:
    """Whether an error is Python at all: `/` for the `*` of a signature or `+` for the `|` of a pattern is not."""
    try:
        compile(mutant(*place).source, place[0], "exec")
    except SyntaxError:
        return False
    return True


def _types(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations, type aliases and decorators of classes stand, which mypy checks and no test runs, and the `strict` of `zip`."""
    found: list[ast.expr | ast.stmt | None] = []  # and how a class is decorated: nothing assigns to a frozen value
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign):
            alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            found.append(node if alias else node.annotation)
        elif isinstance(node, ast.arg):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            found.append(node.value)
        elif isinstance(node, ast.ClassDef):
            found += node.decorator_list
    return [
        ((one.lineno, max(one.col_offset - 1, 0)), (one.end_lineno or one.lineno, one.end_col_offset or 0))
        for one in found
        if one is not None
    ]


class _Changed(importlib.abc.MetaPathFinder):
    """Finds the changed module instead of the file."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != self._mutant.module:
            return None
        file = str(ROOT / self._mutant.file)
        code = compile(self._mutant.source, file, "exec")

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str):  # type: ignore[no-untyped-def]  # noqa: ARG002
                return code

        return importlib.util.spec_from_loader(name, Loader(name, file))


def survives(one: Mutant | None, subject: Subject) -> bool:
    """Whether every test passes with the error; None for none."""
    child = os.fork()
    if child == 0:
        os.setsid()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if one is not None:
            sys.meta_path.insert(0, _Changed(one))
        os._exit(_failed(subject))
    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _failed(subject: Subject) -> int:
    import pytest

    # Rewriting of assertions would import the module from its file.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "-k", "not published"]
    try:
        for tests in subject.tests:
            code = pytest.main([*options, *tests])
            if code != 0:
                return 1
    except BaseException:
        return 1
    return 0


def _load(subject: Subject) -> None:
    os.environ["CI"] = "yes"  # Hypothesis draws the same every time
    import pytest  # noqa: F401

    for name in subject.loaded:
        importlib.import_module(name)
    discovery = importlib.import_module("conformance.suite.discovery")
    load, shipped = discovery.load, discovery.load()
    discovery.load = lambda paths=None: shipped if paths is None else load(paths)
    for file in _files(subject):
        name = file.removesuffix(".py").replace("/", ".")
        assert name not in sys.modules, f"{name} is loaded before it is changed"


def _files(subject: Subject) -> list[str]:
    found = (path for pattern in subject.files for path in sorted(ROOT.glob(pattern)))
    # Wrong models are errors on purpose, each with its own test.
    return [str(path.relative_to(ROOT)) for path in found if not path.name.startswith(("__init__", "wrong_"))]


def measured(
    name: str, sample: int | None, seed: int, only: Sequence[str], output: Path | None, again: Path | None
) -> float:
    """Print the score of a subject and its survivors; returns the score."""
    subject = SUBJECTS[name]
    _load(subject)
    files = [file for file in _files(subject) if not only or any(one in file for one in only)]
    every = [(file, *one) for file in files for one in mutants(file)]
    drawn = random.Random(seed).sample(every, len(every))
    chosen = sorted(islice(filter(_compiles, drawn), sample))
    skipped: set[tuple[str, str, int]] = set()
    if again is not None:
        earlier = [json.loads(line) for line in again.read_text(encoding="utf-8").splitlines()]
        skipped = {(one["file"], one["operator"], one["number"]) for one in earlier if not one["survived"]}
    if not survives(None, subject):
        raise SystemExit(f"{name}: the tests fail without any error")
    if survives(Mutant(files[0], "", 0, 0, "an error"), subject):
        raise SystemExit(f"{name}: the tests do not import what is changed")
    began, alive = time.monotonic(), []
    for count, place in enumerate(chosen, 1):
        one = mutant(*place)
        survived = (one.file, one.operator, one.number) not in skipped and survives(one, subject)
        if survived:
            alive.append(one)
        if output is not None:
            said = {"file": one.file, "line": one.line, "operator": one.operator, "number": one.number}
            with output.open("a", encoding="utf-8") as file:
                print(json.dumps({**said, "survived": survived, "difference": one.difference}), file=file)
        if survived:
            print(f"{one.file}:{one.line}: {one.difference}", flush=True)
        if count % 50 == 0:
            print(f"  {count} of {len(chosen)}, {len(alive)} survive, {time.monotonic() - began:.0f} s", flush=True)
    score = 1 - len(alive) / len(chosen)
    print(f"{name}: {score:.1%} of {len(chosen)} noticed, of {len(every)} possible; {time.monotonic() - began:.0f} s")
    return score


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("subject", nargs="+", choices=sorted(SUBJECTS))
    arguments.add_argument("--sample", type=int, help="so many errors of each subject, drawn at random; all by default")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--only", action="append", default=[], help="only files whose path contains this")
    arguments.add_argument("--output", type=Path, help="append each error and whether it survived, as JSON lines")
    arguments.add_argument("--again", type=Path, help="what tests noticed in this output of a run they notice still")
    asked = arguments.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name in asked.subject:
        # A process each: what one subject loads, another changes.
        child = os.fork()
        if child == 0:
            measured(name, asked.sample, asked.seed, asked.only, asked.output, asked.again)
            sys.stdout.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
