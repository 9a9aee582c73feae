"""What the driver makes of Hadoop's settings."""

from __future__ import annotations

from types import SimpleNamespace

from harness.driver.session import _clear_hadoop_defaults


class Settings(dict[str, str]):
    """As much of a Hadoop ``Configuration`` as it needs."""

    set = dict.__setitem__


def test_of_hadoops_settings_those_stay_that_somebody_has_set():
    settings = Settings({"io.file.buffer.size": "4096", "fs.s3a.endpoint": "https://default"})
    ours = {"spark.hadoop.fs.s3a.endpoint": "https://ours", "spark.app.name": "conformance"}
    context = SimpleNamespace(
        _jsc=SimpleNamespace(hadoopConfiguration=lambda: settings),
        getConf=lambda: SimpleNamespace(getAll=lambda: list(ours.items())),
    )
    _clear_hadoop_defaults(SimpleNamespace(sparkContext=context))
    assert settings == {"fs.s3a.endpoint": "https://ours"}
