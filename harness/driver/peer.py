"""Who stands at the other end of a connection of this machine: every user may connect to a port of 127.0.0.1."""

from __future__ import annotations

import io
import os
import socket
from typing import Any

_ESTABLISHED = "01"
"""The state of a connection in Linux's tables. Source: include/net/tcp_states.h."""


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process that has connected is of this user; True where the system has no table that says so (not Linux)."""
    tables = [table for table in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(table)]
    ports = ["{:04X}".format(address[1]) for address in (connection.getpeername(), connection.getsockname())]
    for table in tables:
        with open(table, encoding="ascii") as file:
            for row in map(str.split, file):
                # Of a connection that its owner has closed, Linux says that it is of root.
                if [row[1][-4:], row[2][-4:], row[3]] == [*ports, _ESTABLISHED]:
                    return int(row[7]) == os.geteuid()
    return not tables


def refuse_others(server: Any) -> None:
    """Let py4j's server, through which the JVM calls functions of this process, serve this user only: it asks for no secret."""
    create = server._create_connection

    def checked(connection: socket.socket, stream: Any) -> Any:
        # What has arrived could be read even after `shutdown`.
        return create(connection, stream if is_of_this_user(connection) else io.BytesIO())

    server._create_connection = checked
