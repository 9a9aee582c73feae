"""The debugger speaks its protocol with a peer that stands for a JVM; numbers and layouts are those of Oracle's specification of JDWP."""

import os
import re
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import TypeVar

import pytest

from harness.driver.jobs.debugger import NULL, DebuggedMethod, Debugger, DebuggerFailed, Stop

T = TypeVar("T")
START = DebuggedMethod(7, 8, "start", "(Ljava/lang/String;J[I)Ljava/lang/Object;", 1)


class Peer:
    """The JVM's side of a connection."""

    def __init__(self, debugger: Debugger) -> None:
        found = re.fullmatch(
            r"-agentlib:jdwp=transport=dt_socket,server=n,suspend=n,address=(.*):(\d+)", debugger.option
        )
        assert found is not None
        self._socket = socket.create_connection((found[1], int(found[2])), timeout=60)
        self._socket.sendall(b"JDWP-Handshake")
        assert self._read(14) == b"JDWP-Handshake"

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part
            data += part
        return data

    def receive(self) -> tuple[int, tuple[int, ...], bytes]:
        """The number, the command and the data of the next packet."""
        length, number, flags, *asked = struct.unpack(">IIBBB", self._read(11))
        assert flags == 0
        return number, tuple(asked), self._read(length - 11)

    def answer(self, command: tuple[int, int], data: bytes, error: int = 0) -> bytes:
        """Answer the next command, which must be this one. Return its data."""
        number, asked, got = self.receive()
        assert asked == command
        self._socket.sendall(struct.pack(">IIBH", 11 + len(data), number, 0x80, error) + data)
        return got

    def tell(self, data: bytes) -> None:
        """Send events: set 64, command 100."""
        self._socket.sendall(struct.pack(">IIBBB", 11 + len(data), 1, 0, 64, 100) + data)

    def close(self) -> None:
        self._socket.close()


@contextmanager
def _asking(call: Callable[[Debugger], T], debugger: Debugger | None = None) -> Iterator[tuple[Peer, Callable[[], T]]]:
    debugger = debugger or Debugger(10)
    peer = Peer(debugger)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(call, debugger)
        yield peer, asked.result
    peer.close()


def _text(text: str) -> bytes:
    return struct.pack(">I", len(text)) + text.encode()


def test_threads_stop_at_the_methods_that_have_code() -> None:
    def stop(debugger: Debugger) -> tuple[int, Stop]:
        return debugger.stop_at("a.B", ["start"]), debugger.next_stop()

    with _asking(stop) as (peer, result):
        assert peer.answer((1, 2), struct.pack(">IBQI", 1, 1, 7, 7)) == _text("La/B;")
        methods = [(8, START.signature, 1), (9, "()V", 0x400)]
        declared = [
            struct.pack(">Q", id) + _text("start") + _text(of) + struct.pack(">I", on) for id, of, on in methods
        ]
        assert peer.answer((2, 5), struct.pack(">I", 2) + b"".join(declared)) == struct.pack(">Q", 7)
        at = struct.pack(">BQQQ", 1, 7, 8, 0)
        assert peer.answer((15, 1), struct.pack(">I", 3)) == struct.pack(">BBIB", 2, 1, 1, 7) + at
        peer.tell(struct.pack(">BIBIQ", 0, 1, 90, 0, 5))
        peer.tell(struct.pack(">BIBIQ", 1, 1, 2, 3, 5) + at)
        assert result() == (1, Stop(5, START))


def test_a_long_takes_two_slots_of_the_arguments() -> None:
    with _asking(lambda debugger: debugger.arguments(Stop(5, START))) as (peer, result):
        assert peer.answer((11, 6), struct.pack(">IQBQQQ", 1, 4, 1, 7, 8, 0)) == struct.pack(">Qii", 5, 0, 1)
        values = struct.pack(">IBQBQBqBQ", 4, ord("L"), 11, ord("s"), 12, ord("J"), -2, ord("["), 0)
        wanted = struct.pack(">IBIBIBIB", 0, ord("L"), 1, ord("L"), 2, ord("J"), 4, ord("L"))
        assert peer.answer((16, 1), values) == struct.pack(">QQI", 5, 4, 4) + wanted
        assert result() == (("L", 11), [("L", 12), ("J", -2), NULL])


def test_a_method_ends_with_a_value_and_its_thread_goes_on() -> None:
    with _asking(lambda debugger: debugger.end_with(Stop(5, START), ("Z", 1))) as (peer, result):
        assert peer.answer((11, 14), b"") == struct.pack(">QBb", 5, ord("Z"), 1)
        assert peer.answer((11, 3), b"") == struct.pack(">Q", 5)
        result()


def test_what_a_called_method_throws_and_what_the_jvm_refuses_is_an_error() -> None:
    with _asking(lambda debugger: debugger.call(5, 6, START, ("I", 0))) as (peer, result):
        asked = peer.answer((9, 6), struct.pack(">BQBQ", ord("L"), 0, ord("L"), 9))
        assert asked == struct.pack(">QQQQIBiI", 6, 5, 7, 8, 1, ord("I"), 0, 1)
        with pytest.raises(DebuggerFailed, match="start throws"):
            result()
    with _asking(lambda debugger: debugger.name_of(5)) as (peer, name):
        peer.answer((11, 1), b"", error=10)
        with pytest.raises(DebuggerFailed, match=r"command 11\.1 of the debugger: error 10"):
            name()


def test_a_jvm_that_does_not_connect_is_an_error() -> None:
    with pytest.raises(DebuggerFailed, match=r"did not connect to the debugger within 0\.01 s"):
        Debugger(0.01).name_of(5)


def test_another_user_is_neither_the_jvm_nor_the_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says whose process has connected; nobody else can bind the port before the JVM connects."""
    debugger = Debugger(10)
    address = ("127.0.0.1", int(debugger.option.rpartition(":")[2]))
    me = os.geteuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: me + 1)
        for greeting in (b"JDWP-Handshake", b""):
            with socket.create_connection(address, timeout=60) as other:
                other.sendall(greeting)
                with suppress(ConnectionResetError):
                    assert other.recv(14) == b"", "it was greeted"
        with socket.create_connection(address, timeout=60):
            pass  # hangs up at once
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            other.bind(address)
    with _asking(lambda debugger: debugger.name_of(5), debugger) as (peer, result):
        peer.answer((11, 1), _text("main"))
        assert result() == "main"


@pytest.mark.parametrize("named", ["secret", "main"])
def test_the_jvm_has_the_thread_that_was_named_over_another_channel(named: str) -> None:
    with _asking(lambda debugger: debugger.prove("secret")) as (peer, result):
        peer.answer((1, 4), struct.pack(">IQQ", 2, 5, 6))
        assert peer.answer((11, 1), _text("main")) == struct.pack(">Q", 5)
        peer.answer((11, 1), _text(named))
        with pytest.raises(DebuggerFailed, match="another program") if named == "main" else nullcontext():
            result()


def test_a_jvm_that_ends_is_an_error_of_what_was_asked_and_of_what_is_asked_later() -> None:
    debuggers: list[Debugger] = []

    def name(debugger: Debugger) -> str:
        debuggers.append(debugger)
        return debugger.name_of(5)

    with _asking(name) as (peer, result):
        peer.receive()
        peer.close()
        with pytest.raises(DebuggerFailed, match="the JVM has ended"):
            result()
    with pytest.raises(DebuggerFailed, match="the JVM has ended"):
        debuggers[0].name_of(5)


def test_a_class_that_is_not_loaded_has_no_methods() -> None:
    with _asking(lambda debugger: debugger.stop_at("a.Gone", ["start"])) as (peer, result):
        assert peer.answer((1, 2), struct.pack(">I", 0)) == _text("La/Gone;")
        assert result() == 0


def test_a_static_method_is_called_of_its_class() -> None:
    method = DebuggedMethod(7, 9, "of", "(Z)Z", 9)
    with _asking(lambda debugger: debugger.call(5, None, method, ("Z", 1))) as (peer, result):
        asked = peer.answer((3, 3), struct.pack(">BBBQ", ord("Z"), 0, ord("L"), 0))
        assert asked == struct.pack(">QQQIBbI", 7, 5, 9, 1, ord("Z"), 1, 1)
        assert result() == ("Z", 0)


def test_the_classes_whose_methods_a_thread_runs() -> None:
    with _asking(lambda debugger: debugger.classes_on_stack(5)) as (peer, result):
        frames = struct.pack(">I", 2) + b"".join(struct.pack(">QBQQQ", 1, 1, owner, 8, 0) for owner in (7, 9))
        assert peer.answer((11, 6), frames) == struct.pack(">Qii", 5, 0, -1)
        assert result() == {7, 9}
