"""Real-time mode: what is refused, and that the model does not predict the rest."""

import pytest

from conformance.core.spark_types import parse_schema
from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.checkpoint import ModelCheckpoint
from conformance.model.checks import QuerySettings, check_files, check_trigger
from conformance.model.columns import Ids
from conformance.model.errors import Refused, Unpredictable
from conformance.model.frame import Frame
from conformance.model.query import Query


def stream(rules, name="events"):
    return Frame.read(name, parse_schema("t TIMESTAMP"), rules, Ids()).with_watermark("t", "1 minute")


def started(version, mode, query=lambda rules: stream(rules)):
    rules = rules_of(SparkVersion.parse(version))
    settings = QuerySettings(mode, "realTime", {})
    check_trigger(settings, rules)
    return Query(query(rules).plan, settings, ModelCheckpoint(), rules)


@pytest.mark.parametrize("version", ["3.0.3", "4.1.4"])
def test_pyspark_had_no_such_trigger_before_4_2(version):
    with pytest.raises(Refused, match="unexpected keyword argument 'realTime'") as refused:
        started(version, "update")
    assert refused.value.stage == "start"


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0"])
def test_only_the_update_mode_runs_in_real_time(version):
    with pytest.raises(Refused, match="output mode Append is not supported"):
        started(version, "append")
    with pytest.raises(Unpredictable, match="real-time mode"):
        started(version, "update")


@pytest.mark.parametrize(
    "query",
    [
        lambda rules: stream(rules).group_by(["t"], ["count(*)"]),
        lambda rules: stream(rules).drop_duplicates("t"),
    ],
    ids=["aggregation", "deduplication"],
)
def test_state_in_real_time_arrived_in_4_3(query):
    with pytest.raises(Refused, match=r"Aggregate|Deduplicate") as refused:
        started("4.2.1", "update", query)
    assert refused.value.stage == "run"
    assert refused.value.classes[0].endswith(".OPERATOR_OR_SINK_NOT_IN_ALLOWLIST")
    with pytest.raises(Unpredictable, match="real-time mode"):
        started("4.3.0", "update", query)


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0"])
def test_a_deduplication_within_the_watermark_does_not_run_in_real_time(version):
    with pytest.raises(Refused, match="StreamingDeduplicateWithinWatermarkExec"):
        started(version, "update", lambda rules: stream(rules).drop_duplicates("t", within_watermark=True))


def test_files_cannot_wait_for_rows():
    rules = rules_of(SparkVersion.parse("4.3.0"))
    with pytest.raises(Refused, match="FileStreamSource is not supported in Real-time Mode") as refused:
        check_files(QuerySettings("update", "realTime", {}), rules)
    assert refused.value.stage == "run"
    check_files(QuerySettings("append", "realTime", {}), rules)
    check_files(QuerySettings("update", "default", {}), rules)
