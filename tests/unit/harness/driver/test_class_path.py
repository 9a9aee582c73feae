"""What the class path of an engine begins with."""

import os

import pytest

from harness.driver.session import CLASS_PATH, FIRST_JARS, order_class_path

JARS = (
    "scala-library-2.12.18.jar",
    "spark-core_2.12-3.5.9.jar",
    "spark-sql-api_2.12-3.5.9.jar",
    "spark-sql_2.12-3.5.9.jar",
    "json4s-core_2.12-3.7.0-M11.jar",
)


@pytest.fixture
def home(tmp_path):
    (tmp_path / "jars").mkdir()
    for name in JARS:
        (tmp_path / "jars" / name).touch()
    return tmp_path


def ordered(home, names, **settings):
    settings = {FIRST_JARS: names, **settings}
    order_class_path(settings, str(home))
    assert FIRST_JARS not in settings
    return settings


def test_the_named_jars_come_first_in_their_order(home):
    path = ordered(home, "spark-sql scala-library json4s-core")[CLASS_PATH]
    assert [os.path.relpath(jar, home / "jars") for jar in path.split(os.pathsep)] == [
        "spark-sql_2.12-3.5.9.jar",
        "scala-library-2.12.18.jar",
        "json4s-core_2.12-3.7.0-M11.jar",
    ]


def test_a_jar_that_this_spark_lacks_is_left_out(home):
    assert ordered(home, "spark-core xbean-asm9-shaded")[CLASS_PATH] == str(home / "jars" / "spark-core_2.12-3.5.9.jar")
    assert CLASS_PATH not in ordered(home, "xbean-asm9-shaded")
    assert CLASS_PATH not in ordered(home / "nowhere", "spark-core")


def test_somebodys_class_path_stays_as_it_is(home):
    assert ordered(home, "spark-core", **{CLASS_PATH: "/their.jar"})[CLASS_PATH] == "/their.jar"


@pytest.mark.parametrize("variable", [False, True])
def test_nor_is_that_of_a_vendors_defaults_replaced(home, monkeypatch, variable):
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    folder = home / ("elsewhere" if variable else "conf")
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(f"spark.a 1\n{CLASS_PATH} /their.jar\n")
    assert (CLASS_PATH in ordered(home, "spark-core")) is variable
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    assert CLASS_PATH not in ordered(home, "spark-core")


def test_without_the_setting_nothing_changes(home):
    settings = {"spark.ui.enabled": "false"}
    order_class_path(settings, str(home))
    assert settings == {"spark.ui.enabled": "false"}
