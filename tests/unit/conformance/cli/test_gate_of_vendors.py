"""``conformance gate`` between the runtimes of vendors, which it compares as the Apache releases in them."""

import json

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.data import read_data
from conformance.core.vendors import vendor_runtime
from conformance.core.versions import SparkVersion, releases


def gate(*options):
    return CliRunner().invoke(app, ["gate", *options])


def test_runtimes_are_compared_as_the_releases_in_them():
    done = gate("--from", "dbr-16.4", "--to", "dbr-17.3", "--json")
    shown = json.loads(done.stdout)
    assert [one["title"] for one in shown["runtimes"]] == ["Databricks Runtime 16.4", "Databricks Runtime 17.3"]
    assert (shown["from"], shown["to"]) == ("3.5.2", "4.0.0")
    assert shown["changes"]
    assert done.exit_code == 1


def test_the_answer_says_what_was_compared_and_who_says_so():
    shown = gate("--from", "emr-7.9.0", "--to", "4.3.0").stdout
    assert "Amazon EMR 7.9.0 contains Apache Spark 3.5.5 (https://docs.aws.amazon.com/emr/" in " ".join(shown.split())
    assert "what its vendor changed is not tested" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("dbr-15.5 4.3.0", "dbr-15.5: it is not known which Apache Spark this Databricks Runtime contains; known are"),
        ("dbr-14.3 dbr-15.4", "dbr-14.3 and dbr-15.4 both contain Apache Spark 3.5.0: there is nothing to compare"),
        ("dbr-14.3 3.5.0", "dbr-14.3 and 3.5.0 both contain Apache Spark 3.5.0"),
    ],
)
def test_what_cannot_be_compared_is_said(options, told):
    before, after = options.split()
    result = gate("--from", before, "--to", after)
    assert result.exit_code == 2
    assert told in " ".join((result.stdout + result.stderr).split())


def test_every_runtime_names_a_release_and_has_a_source():
    for prefix, vendor in read_data("conformance.core", "vendors.yaml").items():
        assert vendor["source"].startswith("https://")
        for release in vendor["releases"]:
            runtime = vendor_runtime(f"{prefix}-{release}")
            assert runtime.as_of
            assert SparkVersion.parse(runtime.spark) in releases()


def test_an_apache_version_and_an_unknown_name_are_no_runtime():
    assert [vendor_runtime(text) for text in ("3.5.9", "3.5", "spark-3.5.9", "my-column")] == [None] * 4
