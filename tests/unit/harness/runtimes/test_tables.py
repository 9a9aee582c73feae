"""The packages of table formats: which belongs to which Spark, what an engine gets, and what is told where there is none."""

import re
from pathlib import Path

import pytest

from conformance.core.case import TABLE_FORMATS
from conformance.core.data import read_data
from conformance.core.observation import OwnCodeError
from conformance.core.versions import SparkVersion, releases
from harness.environments.jars import known_jars
from harness.errors import HarnessError
from harness.runtimes import line_packages
from harness.runtimes.line_packages import package_access, package_of
from harness.runtimes.missing import how_to_mend, what_ended
from tests.support.environments import with_jars

SPARK = SparkVersion.parse("3.5.9")
CATALOGUE = read_data("harness.runtimes", "tables.yaml")


@pytest.fixture
def environment(tmp_path):
    return with_jars(tmp_path, "spark-core_2.12-3.5.9.jar", "antlr4-runtime-4.9.3.jar")


@pytest.fixture
def asked(monkeypatch):
    wanted = []

    def fetch(module, name, _environment, **_):
        wanted.append((str(module), name))
        return (Path(f"/jars/{name}.jar"), Path("/jars/antlr4-runtime-4.9.3.jar"))

    monkeypatch.setattr(line_packages, "fetch_with_dependencies", fetch)
    return wanted


def test_every_format_has_packages_for_lines_that_exist():
    lines = {version.line for version in releases()}
    assert tuple(CATALOGUE) == TABLE_FORMATS
    for entry in CATALOGUE.values():
        assert entry["lines"].keys() <= lines
        assert all(re.fullmatch(r"[\w.]+:[\w.-]+:\d+\.\d+\.\d+", package) for package in entry["lines"].values())


@pytest.mark.parametrize("name", ["tables", "accelerators"])
def test_the_sha256_of_the_jar_of_each_package_is_known(name):
    known = known_jars("harness.runtimes", f"{name}_jars.sha256")
    assert all(re.fullmatch(r"[0-9a-f]{64}", sha256) for sha256 in known.values())
    for entry in read_data("harness.runtimes", f"{name}.yaml").values():
        for line, package in entry["lines"].items():
            _, artifact, version = package.split(":")
            assert f"{artifact}_{'2.13' if line >= '4' else '2.12'}-{version}.jar" in known


def test_a_spark_without_a_package_is_told_with_those_that_have_one():
    assert package_of("delta").lacking(SPARK) is None
    why = package_of("delta").lacking(SparkVersion.parse("2.4.8"))
    assert why == (
        "Delta Lake has no package for Spark 2.4: choose one of 3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 4.0, 4.1, 4.2 "
        "(https://docs.delta.io/releases/)"
    )
    early = package_of("delta").lacking(SparkVersion.parse("3.5.1"))
    assert early == "the package of Delta Lake for Spark 3.5 runs from 3.5.2 on: choose a newer one"


def test_an_engine_gets_the_jars_that_its_spark_does_not_have_and_the_settings_beside_the_users(environment, asked):
    given = {"spark.jars": "/mine.jar", "spark.sql.extensions": "acme.Rules"}
    access = package_access([package_of("delta")], SPARK, environment, given, lambda _: None)
    assert asked == [("io.delta:delta-spark_2.12:3.3.3", "delta-spark_2.12-3.3.3")]
    assert access.description == "delta-spark_2.12 3.3.3"
    assert access.settings["spark.jars"] == "/mine.jar,/jars/delta-spark_2.12-3.3.3.jar"
    assert access.settings["spark.sql.extensions"] == "acme.Rules,io.delta.sql.DeltaSparkSessionExtension"
    assert access.settings["spark.sql.catalog.spark_catalog"].endswith(".DeltaCatalog")


def test_two_formats_in_one_engine(environment, asked):
    access = package_access([package_of("delta"), package_of("iceberg")], SPARK, environment, {}, lambda _: None)
    assert len(asked) == 2
    assert len(access.settings["spark.jars"].split(",")) == 2
    assert len(access.settings["spark.sql.extensions"].split(",")) == 2


def test_an_engine_without_a_package_does_not_start(environment, asked):
    with pytest.raises(HarnessError, match=r"has no package for Spark 4\.3"):
        package_access([package_of("delta")], SparkVersion.parse("4.3.0"), environment, {}, lambda _: None)
    assert asked == []


def test_a_jar_of_unknown_content_is_told(environment, asked, monkeypatch):
    monkeypatch.setattr(line_packages, "known_jars", lambda *_: {})
    said = []
    package_access([package_of("delta")], SPARK, environment, {}, said.append)
    assert said == ["no sha256 of delta-spark_2.12-3.3.3.jar is known to this suite: it is used as Maven sends it"]


@pytest.mark.parametrize(
    ("message", "spark", "advice"),
    [
        (
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta. Make sure",
            "3.5.9",
            "no package of Delta Lake is loaded: add --package 3.5=io.delta:delta-spark_2.12:3.3.3, and its settings with --conf",
        ),
        (
            "Failed to find data source: iceberg. Please",
            "4.0.5",
            "4.0=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        ),
        (
            "Failed to find data source: delta. Please",
            "4.3.0",
            "Delta Lake has no package for Spark 4.3: choose one of",
        ),
        (
            "Failed to find data source: hudi. Please",
            "3.5.9",
            "add --package '3.5=GROUP:ARTIFACT:VERSION', or --jar FILE",
        ),
        ("Failed to find data source: avro. Please", "4.3.0", "--package '4.3=org.apache.spark:spark-avro_2.13:4.3.0'"),
        (
            "ModuleNotFoundError(\"No module named 'delta'\")",
            "3.5.9",
            "its package, delta-spark, into a file, and give that with --requirements",
        ),
        ("No module named 'delta.tables'", "3.5.9", "add --package 3.5=io.delta:delta-spark_2.12:3.3.3"),
        (
            "No module named 'sklearn.svm'",
            "3.5.9",
            "no module sklearn.svm: write its package, scikit-learn, into a file",
        ),
        (
            "No module named 'pyspark.dbutils'",
            "3.5.9",
            "which only Databricks has: dbutils is not defined: is this a notebook?",
        ),
        ("No module named 'boto3'", "3.5.9", "no module boto3: write its package, boto3, into a file"),
        ("ModuleNotFoundError: No module named 'pandas'", "3.5.9", "; for an installed Spark, pip install it"),
        (
            "Pandas >= 1.0.5 must be installed; however, it was not found.",
            "3.5.9",
            "no module pandas: write its package, pandas,",
        ),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 15.0.0 must be installed; however, it was not found.",
            "4.3.0",
            "no module pyarrow: write its package, pyarrow,",
        ),
        ("No module named 'dlt'", "3.5.9", "a declarative pipeline is tried by its file"),
        ("cannot import name 'pipelines' from 'pyspark' (x)", "3.5.9", "a declarative pipeline is tried by its file"),
        (
            "[GRAPH_ELEMENT_DEFINED_OUTSIDE_OF_DECLARATIVE_PIPELINE] x",
            "4.3.0",
            "conformance check FILE.py, not FILE:FUNCTION",
        ),
        ("java.lang.ClassNotFoundException: io.delta.tables.DeltaTable", "3.5.9", "io.delta:delta-spark_2.12:3.3.3"),
        (
            "NoClassDefFoundError: acme/jobs/Sums",
            "3.5.9",
            "no class acme.jobs.Sums is loaded: add --package '3.5=GROUP",
        ),
        (
            "java.lang.ClassNotFoundException: com.databricks.sql.streaming.state.RocksDBStateStoreProvider",
            "3.5.9",
            "which only Databricks has; its state store in RocksDB is here org.apache.spark.sql.execution.streaming.state.",
        ),
        ("java.lang.ClassNotFoundException: com.databricks.spark.xml.Xml", "3.5.9", "com.databricks:spark-xml_2.12"),
        ("NameError(\"name 'dbutils' is not defined\")", "3.5.9", "dbutils is not defined: is this a notebook?"),
        (
            "AnalysisException: [PATH_NOT_FOUND] Path does not exist: s3a://dim/products.",
            "4.0.5",
            "s3a://dim/products: a batch read or write needs what a trial does not have",
        ),
        (
            "AnalysisException: [REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, but got `a`.`b`.",
            "3.5.9",
            "but got `a`.`b`: a batch read or write needs what a trial does not have",
        ),
        ("NameError(\"name 'spark' is not defined\")", "3.5.9", "spark = SparkSession.builder.getOrCreate()"),
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column or function parameter with name `_metadata`.`file_path` cannot be resolved.",
            "4.3.0",
            "read the files in a program",
        ),
        ("Column '_metadata.file_path' does not exist. Did you mean one of: [orders.amount]", "3.3.4", "no _metadata"),
        (
            "ImportError('attempted relative import with no known parent package')",
            "3.5.9",
            "a program with relative imports is a module of its package: name it package.module, not FILE, as python -m does",
        ),
    ],
)
def test_an_error_without_a_package_says_which_to_load(message, spark, advice):
    assert advice in str(how_to_mend(message, SparkVersion.parse(spark)))


def test_a_column_that_is_not_that_of_files_is_no_reason_to_read_files():
    other = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `amuont` cannot be resolved. Did you mean `_metadata`?"
    )
    assert how_to_mend(other, SPARK) is None


def test_a_class_that_the_code_calls_is_named_by_its_line():
    line = 'File "hub.py", line 6\n  conf = sc._jvm.org.apache.spark.eventhubs.EventHubsUtils.encrypt("x")'
    said = "TypeError(\"'JavaPackage' object is not callable\")"
    assert how_to_mend(said, SPARK, line) == (
        "no class org.apache.spark.eventhubs.EventHubsUtils.encrypt is loaded: add --package "
        "'3.5=com.microsoft.azure:azure-eventhubs-spark_2.12:VERSION', with its VERSION for Spark 3.5"
    )
    avro = how_to_mend(
        said, SPARK, 'File "trips.py", line 21\n  .select(from_avro(expr("substring(value, 6)"), schema))'
    )
    assert (
        avro
        == "no class org.apache.spark.sql.avro is loaded: add --package '3.5=org.apache.spark:spark-avro_2.12:3.5.9'"
    )
    assert "a class of Java that the code calls is loaded" not in str(how_to_mend(said, SPARK))


def test_a_variable_that_an_engine_does_not_have_is_named():
    line = 'File "job.py", line 6\n  uri = os.environ["COSMOS_URI"]'
    advice = "the environment variable COSMOS_URI is not set in an engine: set it, and add --env COSMOS_URI"
    assert how_to_mend("KeyError('COSMOS_URI')", SPARK, line) == advice
    assert how_to_mend("KeyError('COSMOS_URI')", SPARK, 'File "job.py", line 6\n  uri = settings["COSMOS_URI"]') is None


@pytest.mark.parametrize(
    "message",
    [
        "ClassNotFoundException: org.apache.spark.sql.execution.RocksDBStateStoreProvider",
        "No module named 'acme'",
        "name 'orders' is not defined",
    ],
)
def test_what_is_the_users_own_is_left_as_it_is(message):
    assert how_to_mend(message, SPARK) is None


def test_what_ended_the_code_is_what_is_missing_or_the_error_with_its_lines():
    def ended(raised):
        return what_ended(OwnCodeError(raised=raised, at="job.py:3", during="in a UDF", traceback="the frames"), SPARK)

    assert ended("ModuleNotFoundError(\"No module named 'yaml'\")").startswith(
        "no module yaml: write its package, pyyaml"
    )
    assert ended("NotGiven('no value of day: --set day=VALUE')") == (
        "no value of day: --set day=VALUE; it is asked for at job.py:3"
    )
    assert ended("WithoutEnd('')").startswith("it starts queries, or waits for their end, again and again at job.py:3")
    assert ended("KeyError('who')") == "your code raised KeyError('who') at job.py:3, in a UDF\nthe frames"
