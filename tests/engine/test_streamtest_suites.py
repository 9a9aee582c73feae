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
from reports.analysis.published import published_results
from reports.html.streamtest_suite import is_expressible, suite_name
from reports.results.known_bug import listed_bugs
from tests.engine.stream_tests import compile_suites, jars_of_tests, run_suites
from tests.support.effort import full_run_only

CONFORM = (
    "late-drops/window-still-open",
    "several-watermarks/lowest-watermark-counts",
    "recovery/graceful-restart-keeps-the-watermark",
)
RELEASE = "4.2.0"
"""The newest whose test jars Maven Central has."""


def bugs() -> Iterator[str]:
    """The cases whose suite shows a bug of the release: one that a later release fixed, and each that is reported."""
    yield "recovery/inner-join-goes-on-where-the-event-time-has-two-names"
    for bug in listed_bugs().values():
        case = discovery.find(str(bug.case)) if bug.cause is not None else None
        if not isinstance(case, Case) or not is_expressible(case):
            continue
        entry = case.differs_on(SparkVersion.parse(RELEASE))
        if entry is not None and entry.bug:
            yield case.id


@full_run_only
def test_a_suite_is_red_where_spark_has_the_bug_of_its_case(tmp_path: Path) -> None:
    (target,) = Targets.load().select([RELEASE])
    environment = prepare(target)
    jars, classes = jars_of_tests(target, environment), tmp_path / "classes"
    sources, names, published = [], {}, published_results()
    red_ones = {*bugs()}
    assert len(red_ones) > 7
    for id in (*CONFORM, *sorted(red_ones)):
        case = discovery.find(id)
        assert isinstance(case, Case)
        entry = case.differs_on(SparkVersion.parse(RELEASE))
        assert (entry is not None and entry.bug) == (id in red_ones)
        source = tmp_path / f"{suite_name(case)}.scala"
        source.write_text(streamtest(case, published), encoding="utf-8")
        sources.append(source)
        names[suite_name(case)] = id
    compile_suites(sources, environment, jars, classes)
    said = run_suites([*names], environment, [classes, *jars], tmp_path)
    red = {names[suite] for suite in re.findall(r"^(\w+):$(?:\n(?!\w+:$).*)*?\*\*\* FAILED \*\*\*", said, re.MULTILINE)}
    assert f"Tests: succeeded {len(CONFORM)}, failed {len(red_ones)}" in said, said[-4000:]
    assert red == red_ones, said[-4000:]
