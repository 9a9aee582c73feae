"""Of the processes that connect to a port of this machine, only those of this user are served."""

import os
import socket
from types import SimpleNamespace

import pytest

from harness.driver.peer import is_of_this_user, refuse_others, this_user_listens


@pytest.mark.parametrize(("user", "is_ours"), [(0, True), (1, False)])
def test_the_user_is_whose_process_has_connected(user, is_ours, monkeypatch):
    """``user``: how far this process's user is from that of the peer."""
    me = os.geteuid()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        connection, _ = server.accept()
        monkeypatch.setattr(os, "geteuid", lambda: me + user)
        assert is_of_this_user(connection) is is_ours
        assert this_user_listens(server.getsockname()[1]) is is_ours
        assert not this_user_listens(peer.getsockname()[1])
        created = []
        py4j = SimpleNamespace(_create_connection=lambda *given: created.append(given) or "created")
        refuse_others(py4j)
        with connection, connection.makefile("rb") as stream:
            peer.sendall(b"c\np0\ncall\ne\n")
            assert py4j._create_connection(connection, stream) == "created"
            ((_, read),) = created
            assert read.readline() == (b"c\n" if is_ours else b"")


def test_a_peer_that_has_hung_up_is_nobody(monkeypatch):
    """Linux lists its connection as one of root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        connection, _ = server.accept()
        with connection:
            assert not is_of_this_user(connection)
