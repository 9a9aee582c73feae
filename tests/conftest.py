"""What all tests share: which files are none, and that no property is a matter of time."""

import gc
import os
import re
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.effort import number

ROOT = Path(__file__).parents[1]

_NUMBERS = count(1)

# The YAML below is material of tests, right and wrong on purpose: no case for pytest to collect.
collect_ignore_glob = ["*.yaml"]
# A repository of somebody else, whose tests run in an environment of its own.
collect_ignore = ["adopter"]

# As the command line does: the built-in suite and its predictions are many values that live long and few cycles.
gc.set_threshold(100_000, 20, 20)

# Tests start some hundred processes of Python; each starts in two thirds of the time if modules are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A worker of pytest-xdist has the width of the terminal that it does not write to; answers have the width that files get.
os.environ.pop("COLUMNS", None)

# Speed is asserted in benchmarks/, as a ratio; a test that fails because the machine is busy says nothing.
# In CI every run draws the same: whether a change lands must not depend on luck. `conformance maintain fuzz` is what draws at random.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ, max_examples=number(20, 200))
settings.load_profile("suite")


ON_ONE_WORKER = re.compile(
    r"tests/browser/|tests/engine/test_(docs|driver)\.py|tests/container/test_build\.py|tests/unit/.*"
)
"""Modules that one worker runs whole. Tests of a browser, of images and of the documentation share something that is slow to start,
without a fixture of the module. Unit tests share what a process computes once, and are shorter than the time it takes to hand one out."""

PUBLISHED = re.compile("published_(?:report|specification)")
"""Modules that say this read all published results, and ask the model about all cases, which a process does once."""

OF_A_MODULE = re.compile(r"^@pytest\.fixture\(scope=\"module\"", re.MULTILINE)


@cache
def group(path: str) -> str | None:
    """What runs on one worker, one after the other, with the tests of this module: two workers would each make its fixtures, and
    take away what the other one still uses where both make the same thing, an image for one."""
    text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
    if PUBLISHED.search(text):
        return PUBLISHED.pattern
    if found := ON_ONE_WORKER.match(path):
        return found[0]
    return path if OF_A_MODULE.search(text) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config):
    """Give workers a folder for what they share before they have fixtures."""
    shared = tempfile.TemporaryDirectory(prefix="conformance-tests-")
    os.environ["SHARED_BY_WORKERS"] = shared.name
    config.add_cleanup(shared.cleanup)


def pytest_collection_finish():
    """What is there now, modules and tests, stays until the end: the garbage collector need not look at it again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_make_scheduler():
    """pytest-xdist 3.8 groups tests by a suffix to their ids, which pytest 9.2 no longer lets it give; the scheduler has the plain ids.

    Groups are handed out as they were collected, not those with the most tests first: a few tests on real engines take longest.
    """
    scheduler = yield
    if hasattr(scheduler, "_split_scope"):
        scheduler.config.option.loadscopereorder = False
        otherwise = scheduler._split_scope
        scheduler._split_scope = lambda id: group(id.partition("::")[0]) or otherwise(id)
    return scheduler


@pytest.fixture(scope="session")
def folder_of_answers(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(autouse=True)
def nothing_known_yet(folder_of_answers, monkeypatch):
    """Each test begins with no answers of earlier runs, in this process and in those it starts."""
    monkeypatch.setenv("CONFORMANCE_ANSWERS", str(folder_of_answers / f"{next(_NUMBERS)}.sqlite"))
