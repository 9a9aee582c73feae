"""What the model does with queries that it cannot read: it has no opinion, and ends nothing."""

import pytest

from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.model.errors import DEFECT, ModelDefect, Unpredictable
from conformance.model.parsing import syntax
from conformance.model.sql import _syntax
from conformance.oracle import prediction
from conformance.oracle.prediction import predict

VERSIONS = [SparkVersion.parse(text) for text in ("3.0.3", "3.5.9", "4.3.0")]


def case_of(*operations):
    return case_from(
        {
            "title": "t",
            "streams": {"events": "event_time TIMESTAMP, id INT"},
            "query": [{"from": "events"}, {"withWatermark": ["event_time", "10 minutes"]}, *operations],
            "steps": [{"add": {"events": [["12:00", 1], ["12:11", 2], [None, 3]]}}],
        },
        "hostile/a",
    )


def counted(*keys):
    return {"groupBy": list(keys), "agg": ["count(*) AS n"]}


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(
    "operation",
    [
        {"select": ["id", "row_number() OVER (ORDER BY id) AS n"]},
        {"sql": "SELECT 1", "as": "v"},
        counted("window(event_time, '0 minutes')"),
        counted("window(event_time, '-5 minutes')"),
        counted("window(event_time, '10 minutes', '0 minutes')"),
        counted("window(event_time, '10 minutes', '20 minutes')"),
        counted("window(event_time)"),
        counted("window()"),
        counted("session_window(event_time)"),
        {"groupBy": ["event_time"], "agg": ["id + 1"]},
        {"select": ["count(*)"]},
        {"where": "count(*) > 1"},
        {"where": "event_time > INTERVAL 1 DAY"},
        {"where": "event_time > 'noon'"},
        {"select": ["INTERVAL 1 DAY AS t"]},
        {"where": "(" * 3000 + "id" + ")" * 3000},
        {"where": "NOT " * 5000 + "true"},
    ],
    ids=lambda operation: str(operation)[:60],
)
def test_what_the_model_cannot_read_is_not_predicted(operation, version):
    with pytest.raises(Unpredictable) as none:
        predict(case_of(operation), version)
    assert not isinstance(none.value, ModelDefect)


@pytest.mark.parametrize("text", ["`id = 1", "id`", "id + ", "(id", "'"])
def test_text_that_is_not_an_expression_is_not_predicted(text):
    with pytest.raises(Unpredictable):
        syntax(text)


@pytest.mark.parametrize("text", ["SELECT (", "SELECT `id FROM v", "SELECT '"])
def test_text_that_is_not_a_statement_is_not_predicted(text):
    with pytest.raises(Unpredictable):
        _syntax(text)


def test_a_case_that_crashes_the_model_is_not_predicted(monkeypatch):
    def defective(*_):
        raise KeyError("from")

    monkeypatch.setattr(prediction, "CaseSimulation", defective)
    with pytest.raises(ModelDefect, match="KeyError: 'from'") as none:
        predict(case_of({"where": "id = 1"}), VERSIONS[0])
    assert none.value.construct.startswith(DEFECT)
    assert isinstance(none.value.cause, KeyError)
