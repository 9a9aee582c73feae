from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.version import Version

from conformance.core.case import Case
from conformance.suite import discovery
from harness.environments import java as javas
from harness.environments.installer import Python, Uv
from reports.results.published import BASELINES
from reports.results.reading import Results
from tests.support import environments as fakes
from tests.support.whole_suite import whole_suite


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """The file that a hostile checkout writes if its code runs."""
    return tmp_path / "canary"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a machine with a shell and nothing else: no Java anywhere, one Python 3.11.7 on PATH."""
    monkeypatch.setattr(javas, "_INSTALLED_UNDER", ())
    path = tmp_path / "path"
    path.mkdir()

    def pythons(uv: Uv) -> tuple[Python, ...]:
        return (Python(path / "python3.11", Version("3.11.7")),) if str(path) in uv._environ["PATH"] else ()

    monkeypatch.setattr(Uv, "pythons", pythons)
    return {
        "PATH": str(tmp_path / "path"),
        "HOME": str(tmp_path / "home"),
        "CONFORMANCE_CACHE": str(tmp_path / "cache"),
    }


@pytest.fixture
def with_java(bare: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The same machine, with a Java 17."""
    return bare | {"JAVA_HOME": str(fakes.java(tmp_path / "jdk-17", "17.0.15", "java.base"))}


@pytest.fixture(scope="session", autouse=True)
def _suite_read_once() -> Iterator[None]:
    """Commands in this process are given the built-in suite as other tests have read it; reading it takes seconds.

    ``whole_suite`` is what ``discovery.load`` gives; all its values are frozen.
    """
    load, some, shipped = discovery.load, discovery.some, discovery.shipped

    def read(paths: Iterable[Path] | None = None) -> discovery.Suite:
        # A test may put another suite in its place.
        return load(paths) if paths or discovery.shipped is not shipped else whole_suite()

    def chosen(ids: Iterable[str], paths: Iterable[Path] | None = None, *, key: str | None = None) -> tuple[Case, ...]:
        if paths or discovery.shipped is not shipped:
            return some(ids, paths, key=key)
        wanted = frozenset(ids)
        return tuple(case for case in whole_suite().cases if case.id in wanted and (key is None or getattr(case, key)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discovery, "load", read)
        patch.setattr(discovery, "some", chosen)
        yield


@pytest.fixture(scope="session", autouse=True)
def _published_results_read_once() -> Iterator[None]:
    """The same for the published results, which are frozen, too."""
    read = Results.read

    @cache
    def published(path: Path, condensed: bool) -> Results:
        return read(path, condensed=condensed)

    def reading(path: Path, *, condensed: bool = False) -> Results:
        return published(path, condensed) if path.is_relative_to(BASELINES) else read(path, condensed=condensed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Results, "read", staticmethod(reading))
        yield


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What a binary once answered is remembered for the life of a process; not from one test to the next."""
    yield
    javas._inspected.cache_clear()
