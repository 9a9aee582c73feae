"""Accelerators: what the data says of each, what the option refuses, and which operators of a plan are theirs."""

import re

import pytest

from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion, releases
from harness.runtimes.line_packages import accelerator

CATALOGUE = read_data("harness.runtimes", "accelerators.yaml")
PLAN = """
== Physical Plan ==
WriteToDataSourceV2
+- *(2) HashAggregate(keys=[window#7])
   +- StateStoreSave [window#7]
      +- *(1) CometColumnarToRow
         +- CometHashAggregate [window#7]
            +- CometExchange hashpartitioning(window#7, 1), ENSURE_REQUIREMENTS, CometNativeShuffle
               +- CometProject [event_time#1]
                  +- CometSparkRowToColumnar [event_time#1]
"""


def test_every_accelerator_says_where_it_is_described_and_what_shows_that_it_ran():
    lines = {version.line for version in releases()}
    for entry in CATALOGUE.values():
        assert entry["source"].startswith("https://")
        assert entry["lines"].keys() <= lines
        assert entry["lines"] or entry["needs"]
        assert all(name.startswith(entry["native"]) for name in entry["not_native"])


def test_operators_that_only_move_or_convert_rows_are_not_native():
    found = re.findall(accelerator("comet").native, PLAN)
    assert found == ["CometHashAggregate", "CometExchange", "CometProject"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("comett", "--with: unknown accelerator 'comett': did you mean 'comet'?"),
        (
            "rapids",
            "--with rapids: RAPIDS Accelerator for Apache Spark needs a GPU of NVIDIA, which the suite does not set",
        ),
    ],
)
def test_what_cannot_run_is_refused_in_a_line(name, says):
    with pytest.raises(WrongUsage, match=re.escape(says)):
        accelerator(name)


def test_a_spark_without_a_package_is_refused_and_the_newest_line_with_one_is_the_default():
    comet = accelerator("comet")
    comet.check([SparkVersion.parse("3.5.9")])
    assert comet.release(SparkVersion.parse("3.5.9")) == "Apache DataFusion Comet 0.12.0"
    assert comet.newest_line in CATALOGUE["comet"]["lines"]
    with pytest.raises(WrongUsage, match=r"--with comet: Apache DataFusion Comet has no package for Spark 4\.3"):
        comet.check([SparkVersion.parse("3.5.9"), SparkVersion.parse("4.3.0")])
