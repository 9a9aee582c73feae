"""What awaits a checkpoint is what cases show on real engines, or what Spark's source says."""

import pytest

from conformance.checkpoints.awaiting import AwaitingChange, changes, reasons
from conformance.core.case import Case
from conformance.core.observation import ErrorSeen
from conformance.core.versions import SparkVersion
from tests.support.whole_suite import whole_suite


def links(case: Case) -> set[str | None]:
    """The tickets and pages that a case names."""
    return {*case.links, *(entry.link for entry in (*case.differs, *case.upgrades))}


@pytest.mark.parametrize("change", changes(), ids=lambda change: f"{next(iter(change.when))} to {change.to}")
def test_each_rule_names_its_evidence(change: AwaitingChange) -> None:
    assert (change.case is None) is (change.source is not None)
    if change.case is None:
        return
    (case,) = (one for one in whole_suite().cases if one.id == change.case)
    assert change.link in links(case)
    if change.error is not None:
        errors = [entry.error for entry in case.upgrades] + [step.expect.error for step in case.steps]
        assert change.error in {name for error in errors if error for name in error.classes}
    if change.workaround is not None:
        assert {entry.workaround for entry in case.upgrades if entry.link == change.link} <= {change.workaround}


NULLABLE = (
    "Existing value_schema=StructType(StructField(id,LongType,false),StructField(matched,BooleanType,true)) and new "
    "value_schema=StructType(StructField(id,LongType,true),StructField(matched,BooleanType,true))."
)
SUM = (
    "Existing value_schema=StructType(StructField(sum,DoubleType,true)) and new "
    "value_schema=StructType(StructField(sum,LongType,true))."
)


def refusal(message: str) -> ErrorSeen:
    return ErrorSeen(stage="run", classes=("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",), message=message)


def test_a_documented_reason_is_named_where_operator_and_kind_of_difference_are_its_own() -> None:
    difference, documented = reasons(refusal(NULLABLE), changes(), SparkVersion(4, 3, 0))
    assert difference == "state of the join, column id: NOT NULL in the checkpoint, nullable wanted"
    assert documented.endswith("(SPARK-57003)")


@pytest.mark.parametrize(
    ("message", "told"),
    [(SUM, ("state of the aggregation, column sum: double in the checkpoint, bigint wanted",)), ("", ())],
)
def test_the_class_of_an_error_alone_is_no_reason(message: str, told: tuple[str, ...]) -> None:
    """A job without a join was told of the key of its join, and of a setting with which its sums were wrong."""
    assert reasons(refusal(message), changes(), SparkVersion(4, 3, 0)) == told


def test_a_reason_of_other_versions_is_none() -> None:
    assert len(reasons(refusal(NULLABLE), changes(), SparkVersion(3, 5, 9))) == 1
