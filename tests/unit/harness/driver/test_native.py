"""Which operators of the micro-batches that run now an accelerator runs."""

from types import SimpleNamespace

from harness.driver.progress import native_operators
from harness.runtimes.line_packages import accelerator


def test_the_operators_of_all_queries_that_run_are_named_once():
    plans = "+- CometFilter a\n   +- CometFilter b\n", "No physical plan. Waiting for data.", "*(1) CometProject c"
    queries = [SimpleNamespace(_jsq=SimpleNamespace(explainInternal=lambda _, plan=plan: plan)) for plan in plans]
    assert native_operators(accelerator("comet").native, queries) == {"CometFilter", "CometProject"}
