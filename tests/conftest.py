"""What all tests share: which files are none, and that no property is a matter of time."""

import gc
import os
import re
from itertools import count

import pytest
from hypothesis import settings

from tests.support.effort import number

_NUMBERS = count(1)

# The YAML below is material of tests, right and wrong on purpose: no case for pytest to collect.
collect_ignore_glob = ["*.yaml"]
# A repository of somebody else, whose tests run in an environment of its own.
collect_ignore = ["adopter"]

# As the command line does: the built-in suite and its predictions are many values that live long and few cycles.
gc.set_threshold(100_000, 20, 20)

# Tests start some hundred processes of Python; each starts in two thirds of the time if modules are compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Speed is asserted in benchmarks/, as a ratio; a test that fails because the machine is busy says nothing.
# In CI every run draws the same: whether a change lands must not depend on luck. `conformance fuzz` is what draws at random.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ, max_examples=number(40, 200))
settings.load_profile("suite")


ON_ONE_WORKER = re.compile(
    r"tests/browser/|tests/engine/test_(adopter|docs|driver|kafka|on_a_cluster|on_a_storage|on_connect|policy_engines|soak)\.py"
    r"|tests/container/test_(build|confinement)\.py"
)
"""Modules whose tests share what takes long to start: a browser and its pages, a cluster, a server, an image, an engine's answers."""


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_make_scheduler():
    """pytest-xdist 3.8 groups tests by a suffix to their ids, which pytest 9.2 no longer lets it give; the scheduler has the plain ids."""
    scheduler = yield
    if hasattr(scheduler, "_split_scope"):
        otherwise = scheduler._split_scope
        scheduler._split_scope = lambda id: found[0] if (found := ON_ONE_WORKER.match(id)) else otherwise(id)
    return scheduler


@pytest.fixture(scope="session")
def folder_of_answers(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(autouse=True)
def nothing_known_yet(folder_of_answers, monkeypatch):
    """Each test begins with no answers of earlier runs, in this process and in those it starts."""
    monkeypatch.setenv("CONFORMANCE_ANSWERS", str(folder_of_answers / f"{next(_NUMBERS)}.sqlite"))
