"""The model and the cases agree, and most cases are predicted.

By default every case on the newest release of the oldest and the newest line, and on one of the lines between them; in a full run
every case on every release, as `conformance case validate --model` also checks, which tests/engine/test_docs.py types.
"""

import pytest

from conformance.core.operations import PythonState
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.oracle.cross_check import cross_check
from conformance.oracle.prediction import predict
from harness.targets.targets import Targets
from tests.support.effort import FULL
from tests.support.whole_suite import whole_suite

CASES = whole_suite().cases
VERSIONS = [target.version for target in Targets.load().entries]
NEWEST_OF_LINES = [*{version.line: version for version in sorted(VERSIONS)}.values()]
BETWEEN = NEWEST_OF_LINES[1:-1]

NOT_PREDICTED = dict(zip((NEWEST_OF_LINES[0], NEWEST_OF_LINES[-1]), (27, 65), strict=True))
"""How many cases are not predicted. A case that needs a construct that the model does not know raises the number; else the model has
lost one that it knew, and an expectation would no longer be compared."""


def some_of(cases, version):
    """Of a line between, those cases that no other line between is asked about."""
    return cases if FULL or version not in BETWEEN else cases[BETWEEN.index(version) :: len(BETWEEN)]


@pytest.mark.parametrize("version", VERSIONS if FULL else NEWEST_OF_LINES, ids=str)
def test_model_and_expectations_agree(version) -> None:
    agreed = cross_check(some_of(CASES, version), [version])
    assert "\n".join(one.verdict.describe() for one in agreed.disagreements) == ""
    # Of a line between, a tenth of the cases is asked, so chance would decide: 0.89 of those of 4.0.5 were predicted, and 0.95 of all.
    if FULL or version not in BETWEEN:
        assert agreed.share >= 0.93
    if version in NOT_PREDICTED:
        assert sum(map(len, agreed.not_predicted.values())) <= NOT_PREDICTED[version]
    for construct, ids in agreed.not_predicted.items():
        assert construct
        assert ids


def test_a_construct_the_model_does_not_know_is_named() -> None:
    case = next(case for case in CASES if case.id == "late-drops/window-still-open")
    with pytest.raises(Unpredictable) as unknown:
        predict(case.model_copy(update={"conf": {"spark.sql.ansi.enabled": "true"}}), VERSIONS[-1])
    assert unknown.value.construct == "conf spark.sql.ansi.enabled"


def test_where_hashes_decide_which_rows_find_their_state_nothing_is_predicted() -> None:
    cases = {case.id.rpartition(".")[2]: case for case in CASES if case.id.startswith("recovery/counts-go-on-where")}
    for name, version in (("strict", "4.1.0"), ("same-number", "4.1.0"), ("not-strict", "4.0.5")):
        predict(cases[name], SparkVersion.parse(version))
    with pytest.raises(Unpredictable, match="other shuffle partitions without strict distribution"):
        predict(cases["not-strict"], SparkVersion.parse("4.1.0"))


def test_every_case_with_state_functions_is_predicted() -> None:
    cases = [case for case in CASES if any(isinstance(one, PythonState) for one in case.operations())]
    assert cases
    # docs/reference-model.md says why.
    snapshot = "recovery/snapshot-of-a-processors-state-is-replaced-by-its-changes"
    lives = [f"state-with-a-time-to-live.{of}.a-{time}" for of in ("pandas", "rows") for time in ("day", "millisecond")]
    lives += [f"time-to-live-needs-processing-time.{mode}" for mode in ("event-time", "none")]
    assert cross_check(cases, VERSIONS if FULL else NEWEST_OF_LINES).not_predicted == {
        "applyInPandasWithState after an aggregation": ("arbitrary-state/function-after-an-aggregation",),
        **{
            f"a checkpoint whose snapshot is {what}": (f"{snapshot}.{what}",) for what in ("empty", "gone", "truncated")
        },
        "what the clock decides": tuple(f"arbitrary-state/{live}" for live in lives),
    }


def test_a_disagreement_is_reported_once_with_its_versions() -> None:
    case = next(case for case in CASES if case.id == "late-drops/late-by-the-watermark-of-the-batch-before")
    checked = cross_check([case.model_copy(update={"differs": ()})], reversed(VERSIONS))
    old = tuple(version for version in sorted(VERSIONS) if version.line < "3.4")
    without, with_metric = checked.disagreements  # 2.4 and 3.0 have no metric for dropped rows
    assert (*without.versions, *with_metric.versions) == old
    assert {version.line for version in without.versions} == {"2.4", "3.0"}
    assert checked.ranges(with_metric.versions) == f"{with_metric.versions[0]} – {old[-1]}"
    for one in (without, with_metric):
        assert [rule.name for rule in one.settled_by] == ["late_watermark"]


def test_ranges_of_versions() -> None:
    first, second, third, fourth, *_ = versions = sorted(VERSIONS)
    checked = cross_check([], versions)
    assert checked.ranges((first, second, fourth)) == f"{first} – {second}, {fourth}"
    assert checked.ranges((third,)) == str(third)
    assert checked.ranges(()) == ""
