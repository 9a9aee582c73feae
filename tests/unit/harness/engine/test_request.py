"""What a case becomes on its way to the driver."""

from __future__ import annotations

import pytest

from conformance.core.case import Operation, Pipeline
from harness.engine.request import request_for
from tests.support.runs import case_named

WINDOW = "window(event_time, '10 minutes')"


def sent(*operations):
    """The operations that the driver gets for the query of a case."""
    query = Pipeline(tuple(Operation(next(iter(written)), written) for written in operations))
    return request_for(case_named("windows/named").model_copy(update={"query": query}), "/x").query


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (WINDOW, f"{WINDOW} AS window"),
        (" Session_Window (t, '5 (' ) ", " Session_Window (t, '5 (' )  AS session_window"),
        (f"{WINDOW} AS slot", f"{WINDOW} AS slot"),
        (f"{WINDOW}.end", f"{WINDOW}.end"),
        (f"f({WINDOW})", f"f({WINDOW})"),
        ("window", "window"),
        ("window(t, '1 day') = window(u, '1 day')", "window(t, '1 day') = window(u, '1 day')"),
    ],
)
def test_a_window_has_the_name_that_only_newer_versions_give_it(written, named):
    assert sent({"groupBy": ["k", written], "agg": ["count(*)"]}) == [{"groupBy": ["k", named], "agg": ["count(*)"]}]


def test_windows_are_named_wherever_a_pipeline_nests():
    inner, named = [{"from": "a"}, {"select": [WINDOW]}], [{"from": "a"}, {"select": [f"{WINDOW} AS window"]}]
    assert sent({"union": inner}, {"sql": WINDOW, "as": "x", "views": {"agg": inner}}, {"where": WINDOW}) == [
        {"union": named},
        {"sql": WINDOW, "as": "x", "views": {"agg": named}},
        {"where": WINDOW},
    ]
