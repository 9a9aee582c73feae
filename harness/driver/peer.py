"""Who stands at the other end of a connection of this machine: every user may connect to a port of 127.0.0.1."""

from __future__ import annotations

import io
import os
import socket
from typing import Any, Iterator, List

_ESTABLISHED = "01"
"""The state of a connection in Linux's tables. Source: include/net/tcp_states.h."""


def is_of_this_user(connection: socket.socket) -> bool:
    """Whether the process that has connected is of this user; True where the system has no table that says so (not Linux)."""
    ports = [connection.getpeername()[1], connection.getsockname()[1]]
    try:
        rows = list(_connections())
    except OSError:
        return True
    # Of a connection that its owner has closed, Linux says that it is of root.
    return any(
        int(row[7]) == os.geteuid()
        for row in rows
        if row[3] == _ESTABLISHED and ports == [int(address.rpartition(":")[2], 16) for address in row[1:3]]
    )


def _connections() -> Iterator[List[str]]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if table == "/proc/net/tcp" or os.path.exists(table):
            with open(table, encoding="ascii") as file:
                yield from (line.split() for line in list(file)[1:])


def refuse_others(server: Any) -> None:
    """Let py4j's server, through which the JVM calls functions of this process, serve this user only: it asks for no secret."""
    create = server._create_connection

    def checked(connection: socket.socket, stream: Any) -> Any:
        # What has arrived could be read even after `shutdown`.
        return create(connection, stream if is_of_this_user(connection) else io.BytesIO())

    server._create_connection = checked
