"""``conformance gate`` between the runtimes of vendors, which it compares as the Apache releases in them."""

import json

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.data import read_data
from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion, releases
from harness.targets.targets import Targets, vendor_runtime
from reports.results.published import nearest_published


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
        (
            "dbr-15.5 4.3.0",
            "dbr-15.5: it is not known which Apache Spark this release of Databricks Runtime contains; known are",
        ),
        ("dbr-14.3 dbr-15.4", "dbr-14.3 and dbr-15.4 both contain Apache Spark 3.5.0: there is nothing to compare"),
        (
            "hdinsight-4.0 4.3.0",
            "this release of Azure HDInsight contains; known are hdinsight-5.0, hdinsight-5.1. Name Apache's release",
        ),
        (
            "dataproc-2.2 4.3.0",
            "this release of Dataproc on Compute Engine contains; known are dataproc-2.3.13, dataproc-3.0. Name Apache's release",
        ),
        ("emr-serverless 4.3.0", "this release of Amazon EMR Serverless contains; known are emr-serverless-6.12.0,"),
        ("cdp-7.1.9 4.3.0", "known are cdp-7.1.9-cds-3.3, cdp-7.1.9-cds-3.5, cdp-7.3.1,"),
        ("acme-1.0 4.3.0", "acme-1.0 names no published release: name one of Apache's (2.4.8, 3.0.3, 3.1.3,"),
        ("dbr-14.3 3.5.0", "dbr-14.3 and 3.5.0 both contain Apache Spark 3.5.0"),
        ("glue-3.0 3.1.3", "glue-3.0 and 3.1.3 are both answered by Apache Spark 3.1.3: there is nothing to compare"),
    ],
)
def test_what_cannot_be_compared_is_said(options, told):
    before, after = options.split()
    result = gate("--from", before, "--to", after)
    assert result.exit_code == 2
    assert told in " ".join((result.stdout + result.stderr).split())


@pytest.mark.parametrize(
    ("name", "title", "spark"),
    [
        ("glue-4.0", "AWS Glue 4.0", "3.3.0"),
        ("glue-5.0", "AWS Glue 5.0", "3.5.4"),
        ("emr-6.15", "Amazon EMR 6.15.0", "3.4.1"),
        ("emr-7.9", "Amazon EMR 7.9.0", "3.5.5"),
        ("emr-serverless-7.9", "Amazon EMR Serverless 7.9.0", "3.5.5"),
        ("fabric-2.0", "Microsoft Fabric Runtime 2.0", "4.1.1"),
        ("cdp-7.3.1", "Cloudera Runtime 7.3.1", "3.4.1"),
        ("cdp-7.1.9-cds-3.3", "Cloudera Runtime 7.1.9-cds-3.3", "3.3.2"),
        ("dataproc-serverless-2.2.30", "Google Cloud Serverless for Apache Spark 2.2.30", "3.5.1"),
        ("dbr-19", "Databricks Runtime 19", "4.2.0"),
    ],
)
def test_a_runtime_contains_what_the_page_of_its_vendor_says(name, title, spark):
    runtime = vendor_runtime(name)
    assert (runtime.title, runtime.spark) == (title, spark)


def test_the_nearest_release_answers_for_one_without_results():
    shown = json.loads(gate("--from", "glue-3.0", "--to", "glue-5.0", "--json").stdout)
    assert (shown["from"], shown["to"]) == ("3.1.3", "3.5.4")
    assert [one["answered_by"] for one in shown["runtimes"]] == ["3.1.3", ""]
    words = " ".join(gate("--from", "glue-3.0", "--to", "4.3.0").stdout.split())
    assert (
        "contains Apache Spark 3.1.1 (https://docs.aws.amazon.com/glue/latest/dg/release-notes.html, 5.1); 3.1.3, the nearest"
        in words
    )


def test_for_a_runtime_of_a_vendor_the_release_of_apache_runs_that_it_contains_and_a_note_says_so():
    choice = Targets.load().choose(["glue-4.0", "3.5.9"])
    assert [str(target.version) for target in choice.targets] == ["3.3.0", "3.5.9"]
    (note,) = choice.notes
    assert note.startswith("AWS Glue 4.0 contains Apache Spark 3.3.0 (https://")
    assert note.endswith("what its vendor changed is not tested: Apache's 3.3.0 runs in its place")
    with pytest.raises(
        WrongUsage, match=r"glue-4\.1: it is not known which Apache Spark this release of AWS Glue contains; known are"
    ):
        Targets.load().choose(["glue-4.1"])


def test_the_gate_answers_every_runtime_whose_release_and_source_are_known():
    answered = {}
    for prefix, vendor in read_data("harness.targets", "vendor_runtimes.yaml").items():
        assert vendor["source"].startswith("https://")
        for release in vendor["releases"]:
            runtime = vendor_runtime(f"{prefix}-{release}")
            assert runtime.as_of
            spark = SparkVersion.parse(runtime.spark)
            assert spark in releases()
            nearest = nearest_published(spark)
            assert nearest is not None
            answered[nearest.line] = runtime
    for runtime in answered.values():  # the last of each line
        done = gate("--from", runtime.name, "--to", "4.3.0", "--json")
        assert done.exit_code == 1, done.output
        (shown,) = json.loads(done.stdout)["runtimes"]
        assert (shown["title"], shown["spark"]) == (runtime.title, runtime.spark)


def test_an_apache_version_and_an_unknown_name_are_no_runtime():
    assert [vendor_runtime(text) for text in ("3.5.9", "3.5", "spark-3.5.9", "my-column")] == [None] * 4
