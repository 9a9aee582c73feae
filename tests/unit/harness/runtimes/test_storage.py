"""Where the files of cases are: what is a folder, what a URL, and which settings only apply to the engine's own disk."""

from pathlib import Path

import pytest
import typer

from conformance.cli.engine_options import ClusterOptions, EngineOptions, runtime_options
from conformance.core.versions import SparkVersion
from harness.runtimes.cluster import StorageUrl, parse_storage
from harness.targets.targets import tuning


@pytest.mark.parametrize(
    "text", ["hdfs://namenode:8020/tests", "s3a://bucket/tests", "dbfs:/Volumes/a/b/c", "file:///mnt/x"]
)
def test_urls(text):
    assert parse_storage(text) == StorageUrl(text)


@pytest.mark.parametrize("text", ["/mnt/shared", "shared", "./a:b", "C:\\shared"])
def test_folders(text):
    assert parse_storage(text) == Path(text)


def test_each_run_has_a_directory_of_its_own():
    one, other = StorageUrl("hdfs://host/tests/").unique_directory(), StorageUrl("hdfs://host/tests").unique_directory()
    assert one != other
    assert one.url.startswith("hdfs://host/tests/conformance-")


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0"])
def test_what_holds_of_a_disk_only_is_left_out_elsewhere(version):
    at = SparkVersion.parse(version)
    elsewhere = tuning(at, own_disk=False)
    assert elsewhere.items() < tuning(at).items()
    assert "spark.driver.extraJavaOptions" in elsewhere
    assert "spark.sql.streaming.checkpointFileManagerClass" not in elsewhere


def test_machines_of_a_cluster_may_share_a_url():
    wished = runtime_options(
        EngineOptions(), ClusterOptions(master="spark://elsewhere:7077", storage="hdfs://host/tests")
    )
    assert wished.storage == StorageUrl("hdfs://host/tests")


def test_containers_have_a_volume_of_their_own():
    with pytest.raises(typer.BadParameter, match="its own volume"):
        runtime_options(EngineOptions(runtime="container"), ClusterOptions(storage="hdfs://host/tests"))


def test_other_machines_need_one():
    with pytest.raises(typer.BadParameter, match="a folder that all of them share, or a URL"):
        runtime_options(EngineOptions(), connect="sc://elsewhere:15002")
