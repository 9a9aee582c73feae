"""Python and Java packages of a user's job."""

import re
from dataclasses import replace

import pytest

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import (
    JARS,
    LOCAL_JARS,
    JarPackage,
    OwnCode,
    jar_settings,
    requirements_in,
    with_requirements,
)
from harness.targets.targets import Targets, tuning

V359, V430 = SparkVersion.parse("3.5.9"), SparkVersion.parse("4.3.0")
DELTA = JarPackage("3.5", "io.delta:delta-spark_2.12:3.2.0")


def test_a_file_of_requirements_is_read_without_comments_and_without_spark(tmp_path):
    file = tmp_path / "job.txt"
    file.write_text(
        "# of the job\npandas==2.2.3  # as in production\n\npyspark==3.5.1\nacme-core[x]>=1 ; python_version > '3.8'\n"
    )
    assert requirements_in(file) == ("pandas==2.2.3", "acme-core[x]>=1 ; python_version > '3.8'")


@pytest.mark.parametrize("line", ["-r other.txt", "--index-url https://x", "pandas=2", "two words"])
def test_a_line_that_is_no_requirement_is_named(tmp_path, line):
    file = tmp_path / "job.txt"
    file.write_text(f"pandas\n{line}\n")
    with pytest.raises(WrongUsage, match=rf"job\.txt:2: {re.escape(repr(line))} is not a requirement such as"):
        requirements_in(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(WrongUsage, match=r"cannot read .*job\.txt: No such file"):
        requirements_in(tmp_path / "job.txt")


def test_an_environment_is_for_exactly_these_requirements():
    (target,) = Targets.load().select(["3.5.9"])
    assert with_requirements(target, ()) is target
    assert with_requirements(target, ("numpy==1.26.4",)).packages == (*target.packages, "numpy==1.26.4")


def test_packages_are_for_their_version_line_or_all():
    of_all, of_one = JarPackage("all", "a:b:1"), JarPackage("4.3.0", "c:d:2")
    packages = (DELTA, of_all, of_one, of_all)
    assert jar_settings(packages, V359) == {JARS: "io.delta:delta-spark_2.12:3.2.0,a:b:1"}
    assert jar_settings(packages, V430, "x:y:1") == {JARS: "x:y:1,a:b:1,c:d:2"}
    assert jar_settings((DELTA,), V430, "x:y:1") == {}


@pytest.mark.parametrize(
    "text", ["io.delta:delta-spark_2.12:3.2.0", "3.5=delta", "spark=a:b:1", "3.5=a:b:1 c:d:2", "=a:b:1"]
)
def test_a_package_that_is_none_is_named(text):
    with pytest.raises(WrongUsage, match="--package: " + re.escape(repr(text))):
        JarPackage.parse(text)
    assert JarPackage.parse("3.5=io.delta:delta-spark_2.12:3.2.0") == DELTA


def test_settings_that_delta_cannot_stand_are_left_out(tmp_path):
    """Hadoop's AbstractFileSystem finds the class for file: in its defaults: UnsupportedFileSystemException without them."""
    (target,) = Targets.load().select(["3.5.9"])
    cleared = {"spark.conformance.hadoopDefaults": "false"}
    assert cleared.items() <= tuning(V359).items()
    with_jars = tuning(V359, own_jars=True)
    assert tuning(V359).keys() - with_jars.keys() == cleared.keys()
    code = OwnCode((tmp_path,))
    for runtime in (LocalRuntime(tmp_path), LocalRuntime(tmp_path, own_code=code)):
        assert runtime._tuning(target) == tuning(V359)
    assert LocalRuntime(tmp_path, packages=(DELTA,))._tuning(target) == with_jars
    for key in (JARS, LOCAL_JARS):
        assert LocalRuntime(tmp_path, conf={key: "x"})._tuning(target) == with_jars
    installed = replace(target, installed=tmp_path)
    assert LocalRuntime(tmp_path, own_code=code)._tuning(installed) == with_jars
    (other,) = Targets.load().select(["4.3.0"])
    assert LocalRuntime(tmp_path, packages=(DELTA,))._tuning(other) == tuning(V430)
