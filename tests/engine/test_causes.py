"""The causes of known bugs name places that Spark's source has: each file, and each method at its lines."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
import zipfile
from functools import cache
from pathlib import Path

import pytest

from harness.environments.cache_directory import cache_dir
from harness.environments.jars import CENTRAL
from reports.results.known_bug import Cause, listed_bugs
from tests.support.effort import full_run_only

CAUSES = [pytest.param(bug.cause, id=str(bug.title)) for bug in listed_bugs().values() if bug.cause is not None]


@cache
def sources(module: str, release: str) -> Path | None:
    """The jar with the sources of a module; None if Maven Central does not have it."""
    name = f"spark-{module}_2.13-{release}-sources.jar"
    path = cache_dir() / "jars" / name
    if not path.exists():
        part = path.with_suffix(".part")
        try:
            urllib.request.urlretrieve(f"{CENTRAL}/org/apache/spark/spark-{module}_2.13/{release}/{name}", part)
        except urllib.error.HTTPError:
            return None
        part.replace(path)
    return path


@full_run_only
@pytest.mark.parametrize("cause", CAUSES)
def test_the_named_lines_are_of_the_named_method(cause: Cause) -> None:
    for place in cause.places:
        module = "catalyst" if place.file.startswith("sql/catalyst/") else "sql"
        jar = sources(module, cause.release)
        if jar is None:
            pytest.skip(f"Maven Central has no sources of {cause.release}")
        with zipfile.ZipFile(jar) as file:
            text = file.read(place.file.partition("/src/main/scala/")[2]).decode().splitlines()
        owner, _, method = place.method.partition(".")
        assert any(re.search(rf"\b(class|trait|object) {owner}\b", line) for line in text), place
        defined = [at for at, line in enumerate(text, 1) if re.search(rf"\b(def|object|val|var) {method}\b", line)]
        first, last = map(int, place.lines.split("-")) if place.lines else (len(text), len(text))
        assert first <= last <= len(text), place
        assert any(at <= last for at in defined), place
