"""Cases as suites of Spark's own tests: green where the case conforms, red for the bugs that a release has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conformance.cli.export import streamtest
from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.suite import discovery
from harness.environments.provision import prepare
from harness.targets.targets import Targets
from reports.exports.programs import is_expressible, suite_name
from reports.results.known_bug import listed_bugs
from reports.results.published import published_results
from tests.engine.stream_tests import compile_suites, jars_of_tests, run_suites
from tests.support.effort import full_run_only
from tools.bug_report.report import written_by_hand

CONFORM = (
    "late-drops/window-still-open",
    "several-watermarks/lowest-watermark-counts",
    "recovery/graceful-restart-keeps-the-watermark",
)
RELEASE, JARS = "4.3.0", "4.2.0"
"""The newest release, and the newest whose test jars Maven Central has: they run with both."""


def bugs() -> Iterator[Case]:
    """The cases whose suite shows a bug of the release that has a report."""
    for bug in listed_bugs().values():
        case = discovery.find(str(bug.case)) if bug.cause is not None else None
        if isinstance(case, Case) and (written(case) or (is_expressible(case) and shows_a_bug(case))):
            yield case


def shows_a_bug(case: Case) -> bool:
    entry = case.differs_on(SparkVersion.parse(RELEASE))
    return entry is not None and entry.bug is not None


def written(case: Case) -> str | None:
    """The suite that is written by hand."""
    return written_by_hand(case).get(f"{suite_name(case)}.scala")


@full_run_only
def test_a_suite_is_red_where_spark_has_the_bug_of_its_case(tmp_path: Path) -> None:
    (target,), (older,) = (Targets.load().select([release]) for release in (RELEASE, JARS))
    environment = prepare(target)
    jars, classes = jars_of_tests(older, prepare(older)), tmp_path / "classes"
    sources, names, published = [], {}, published_results()
    red_ones = {case.id: case for case in bugs()}
    assert len(red_ones) > 10
    for id in (*CONFORM, *sorted(red_ones)):
        case = red_ones.get(id) or discovery.find(id)
        assert isinstance(case, Case)
        source = tmp_path / f"{suite_name(case)}.scala"
        source.write_text(written(case) or streamtest(case, published), encoding="utf-8")
        sources.append(source)
        names[suite_name(case)] = id
    compile_suites(sources, environment, jars, classes)
    said = run_suites([*names], environment, [classes, *jars], tmp_path)
    red = {names[suite] for suite in re.findall(r"^(\w+):$(?:\n(?!\w+:$).*)*?\*\*\* FAILED \*\*\*", said, re.MULTILINE)}
    assert f"Tests: succeeded {len(CONFORM)}, failed {len(red_ones)}" in said, said[-4000:]
    assert red == {*red_ones}, said[-4000:]
