"""A driver in a container, connected through its standard input, output and error."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any

from harness.engine.transport import LONGEST_LINE, TransportClosed, how_it_ended
from harness.runtimes.containers.client import (
    STDOUT,
    APIError,
    DockerException,
    NotFound,
    SocketError,
    frames_iter,
    requests,
)
from harness.runtimes.containers.daemon import remove_container

_ENDING_SECONDS = 60
"""A busy daemon takes its time to notice that a container has ended."""


class AttachedTransport:
    """Attached to a container (docker's object) before it starts, so that no output is missed. ``memory``: its limit, for a message."""

    def __init__(self, container: Any, *, memory: str) -> None:
        self._container = container
        self._api = container.client.api
        self._memory = memory
        self._socket = self._api.attach_socket(container.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        # An SSH channel is itself the socket.
        self._wire = getattr(self._socket, "_sock", self._socket)
        # The client's timeout is for requests; an engine may be silent for minutes.
        self._api._disable_socket_timeout(self._socket)
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._log: queue.Queue[str | None] = queue.Queue()
        self._closed = threading.Lock()
        self._pump = threading.Thread(target=self._split_frames, daemon=True)

    def start(self) -> None:
        """Start the container. Raises ``docker.errors.APIError`` if the daemon cannot, for example because the image lacks the program."""
        self._container.start()
        self._pump.start()

    def write(self, line: str) -> None:
        try:
            self._wire.sendall(f"{line}\n".encode())
        except (OSError, ValueError) as error:
            raise TransportClosed from error

    def answers(self) -> Iterator[str]:
        return iter(self._answers.get, None)

    def log(self) -> Iterator[str]:
        return iter(self._log.get, None)

    def ending(self) -> str:
        try:
            self._container.wait(timeout=_ENDING_SECONDS)
            self._container.reload()
        except NotFound:
            return "its container removed by another process"
        except (DockerException, requests.exceptions.RequestException):
            return "its container still running but silent"
        state = self._container.attrs["State"]
        if state.get("OOMKilled"):
            return f"its container out of memory: the limit is {self._memory}, --memory raises it"
        return how_it_ended(int(state["ExitCode"]), as_shell=True)

    def kill(self) -> None:
        with contextlib.suppress(NotFound, APIError):  # it may have ended by itself
            self._container.kill(signal="SIGKILL")

    def close(self) -> None:
        """Remove the container, running or not."""
        if not self._closed.acquire(blocking=False):
            return
        with contextlib.suppress(APIError):  # not every container engine kills a paused container
            self._container.unpause()
        remove_container(self._api, self._container.id)
        with contextlib.suppress(OSError):
            self._socket.close()
            self._wire.close()
        if self._pump.is_alive():
            self._pump.join(_ENDING_SECONDS)
        self._answers.put(None)
        self._log.put(None)

    def _split_frames(self) -> None:
        """Split the daemon's frames into lines of both outputs."""
        rest = {True: bytearray(), False: bytearray()}
        with contextlib.suppress(OSError, SocketError, ValueError, requests.exceptions.RequestException):
            for stream, data in frames_iter(self._socket, tty=False):
                out = stream == STDOUT
                rest[out] += data
                if b"\n" in data:
                    *lines, rest[out] = rest[out].split(b"\n")
                    for line in lines:
                        self._line(out, line)
                elif len(rest[out]) > LONGEST_LINE:
                    break
        for out, line in rest.items():
            if line:
                self._line(out, line)
        self._answers.put(None)
        self._log.put(None)

    def _line(self, out: bool, line: bytearray) -> None:
        (self._answers if out else self._log).put(line.decode("utf-8", errors="replace"))
