"""Whatever a file holds, reading it ends in a case or in problems with places: never in another error."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.language import InvalidCase, Problem, read_any
from conformance.language.catalogue import Catalogue
from conformance.language.source import Node, ProblemReport, read_yaml

HERE = Path(__file__).parent
TEXTS = [path.read_text(encoding="utf-8") for path in sorted((HERE / "valid").glob("*.yaml"))]
CATALOGUE = Catalogue(HERE, behaviours={"late-predicate": {}}, statements={}, spark_tests={}, tags={})


def plain(path: Path) -> Any:
    node: Node | None = read_yaml(path, ProblemReport(path))
    assert node is not None
    return node.plain()


CONTENTS = [plain(path) for path in sorted((HERE / "valid").glob("*.yaml"))]
SCRAPS: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, 0, -1, 3, 1.5, 10**399, "", "x", "12:00", "once", "events"),
        *([], {}, [[]], [{}], {"x": []}, [1, "a"], {"start": {}}, {"idle": {}}, {"from": "events"}),
        *({"error": None}, {"error": {"class": "X"}}, {4: {"rows": []}}),
    ]
)


def readable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(content)
    for catalogue in (None, CATALOGUE):
        problems: tuple[Problem, ...] = ()
        digest = ""
        try:
            digest = read_any(path, "case", catalogue)[0].digest
        except InvalidCase as invalid:
            problems = invalid.problems
        assert bool(problems) is not bool(digest)
        assert all(problem.message and problem.line >= 1 for problem in problems)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    for step, below in (
        content.items() if isinstance(content, dict) else enumerate(content if isinstance(content, list) else [])
    ):
        found += places(below, (*path, step))
    return found


def replaced(content: Any, path: tuple[Any, ...], scrap: Any) -> Any:
    if not path:
        return scrap
    if isinstance(content, dict):
        return {key: replaced(value, path[1:], scrap) if key == path[0] else value for key, value in content.items()}
    return [replaced(value, path[1:], scrap) if index == path[0] else value for index, value in enumerate(content)]


@QUICK
@given(data=st.data())
def test_anything_in_any_place(folder: Path, data: st.DataObject) -> None:
    content = data.draw(st.sampled_from(CONTENTS))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(content)))
        content = replaced(content, path, data.draw(SCRAPS))
    readable(folder, yaml.safe_dump(content, allow_unicode=True, sort_keys=False).encode())


@QUICK
@given(data=st.data())
def test_keys_renamed_and_taken_out(folder: Path, data: st.DataObject) -> None:
    content = data.draw(st.sampled_from(CONTENTS))
    keys = [path for path in places(content) if isinstance(path[-1], str)]
    path = data.draw(st.sampled_from(keys))
    at = content
    for step in path[:-1]:
        at = at[step]
    name = data.draw(st.sampled_from(["", "x", "add", "from", "error", "steps", "rows", 7, True, None]))
    renamed = {(name if key == path[-1] else key): value for key, value in at.items()}
    gone = {key: value for key, value in at.items() if key != path[-1]}
    for scrap in (renamed, gone):
        readable(folder, yaml.safe_dump(replaced(content, path[:-1], scrap), allow_unicode=True).encode())


@QUICK
@given(data=st.data())
def test_text_cut_and_pasted(folder: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    start = data.draw(st.integers(0, len(text)))
    end = min(len(text), start + data.draw(st.integers(0, 40)))
    pasted = data.draw(st.text(alphabet="[]{}:,-?&*!|>'\"%@`# \n\tab1\x00\u2028é", max_size=6))
    readable(folder, (text[:start] + pasted + text[end:]).encode())


@QUICK
@given(content=st.binary(max_size=200))
def test_bytes(folder: Path, content: bytes) -> None:
    readable(folder, content)
