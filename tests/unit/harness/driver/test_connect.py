"""A client of a Connect server, whose pyspark is a fake: what it watches."""

import socket
import sys
from importlib import import_module
from unittest.mock import MagicMock

import pytest

from harness.driver import outage
from harness.driver.errors import DriverFailure, FailureReason

OF_PYSPARK = ("values", "capture", "connect")
"""The modules of the driver that import pyspark."""


@pytest.fixture
def connect(monkeypatch):
    for name in ("pyspark", "pyspark.sql", "pyspark.cloudpickle"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    yield import_module("harness.driver.connect").Connect
    for name in OF_PYSPARK:
        sys.modules.pop(f"harness.driver.{name}", None)


@pytest.mark.parametrize("closed", [False, True])
def test_a_server_is_watched_before_it_opens_a_session_unless_a_proxy_hides_it(connect, monkeypatch, closed):
    """The client waits for minutes for a session of a server that is gone."""
    watched = []

    def no_session(_):
        assert len(watched) == (not closed)
        raise TimeoutError("no session")

    monkeypatch.setattr(outage, "watch", lambda look, lost, reason: watched.append((look(), lost, reason)))
    monkeypatch.setattr(connect, "new_session", no_session)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if closed:
            server.close()
        with pytest.raises(DriverFailure, match="no session"):
            connect(f"sc://127.0.0.1:{port}", print)
    assert watched == ([] if closed else [(None, print, FailureReason.ENGINE_LOST)])


class Conf:
    """The settings of a session of a server whose operator has switched no-data micro-batches off."""

    def __init__(self, settings):
        self.settings = settings

    def unset(self, key):
        if not self.isModifiable(key):
            raise ValueError
        self.settings[key] = "true"

    def get(self, key):
        return self.settings[key]

    def isModifiable(self, key):  # noqa: N802
        return key.startswith("spark.sql.streaming")


NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


@pytest.mark.parametrize("knows_set", [True, False])
def test_what_sessions_of_a_server_begin_with(connect, monkeypatch, knows_set):
    settings = {
        NO_DATA: "false",
        "spark.executor.memory": "2g",
        "spark.sql.shuffle.partitions": "1",
        "spark.a.token": "x",
    }
    session = MagicMock(conf=Conf({**settings}))
    session.sql.return_value.collect.return_value = [*settings.items()]
    if not knows_set:
        session.sql.side_effect = ValueError("no such statement")
    monkeypatch.setattr(connect, "new_session", lambda _: session)
    client = connect.__new__(connect)
    client._settings, client._is_3 = {}, False
    own = {"settings": [f"{NO_DATA}=false (by default true)"], "fixed": ["spark.executor.memory=2g"]}
    assert client._own_settings() == (own if knows_set else {})
    session.stop.assert_called_once_with()
