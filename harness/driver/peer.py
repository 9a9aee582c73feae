"""Who stands at the other end of a connection of this machine: every user may connect to a port of 127.0.0.1."""

from __future__ import annotations

import io
import os
import socket
from typing import Any

_ESTABLISHED, _LISTENS = "01", "0A"
"""States of a connection in Linux's tables. Source: include/net/tcp_states.h."""


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process that has connected is of this user; True where the system has no table that says so (not Linux)."""
    # Of a connection that its owner has closed, Linux says that it is of root.
    return _this_user_has(connection.getpeername()[1], connection.getsockname()[1], _ESTABLISHED)


def this_user_listens(port: int) -> bool:
    """Whether a process of this user listens at a port; True where the system has no table that says so."""
    return _this_user_has(port, 0, _LISTENS)


def _this_user_has(port: int, remote_port: int, state: str) -> bool:
    tables = [table for table in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(table)]
    wanted = ["{:04X}".format(port), "{:04X}".format(remote_port), state]
    for table in tables:
        with open(table, encoding="ascii") as file:
            for row in map(str.split, file):
                if [row[1][-4:], row[2][-4:], row[3]] == wanted:
                    return int(row[7]) == os.geteuid()
    return not tables


def refuse_others(server: Any) -> None:
    """Let py4j's server, through which the JVM calls functions of this process, serve this user only: it asks for no secret."""
    create = server._create_connection

    def checked(connection: socket.socket, stream: Any) -> Any:
        # What has arrived could be read even after `shutdown`.
        return create(connection, stream if is_of_this_user(connection) else io.BytesIO())

    server._create_connection = checked
