"""Speaks the Java Debug Wire Protocol with the JVM of this engine: stops threads at methods, and ends these with other values.

https://docs.oracle.com/en/java/javase/17/docs/specs/jdwp/jdwp-protocol.html
"""

from __future__ import annotations

import queue
import re
import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ..peer import is_of_this_user

JavaValue = Tuple[str, int]
"""The letter of a type, as in a signature, and a primitive value, or the id of an object; 0 is null."""
NOTHING: JavaValue = ("V", 0)
NULL: JavaValue = ("L", 0)

_HANDSHAKE = b"JDWP-Handshake"
_HEADER = struct.Struct(">IIBH")
"""Length, id, flags; then the numbers of set and command, or in a reply the error."""
_REPLY = 0x80
_EVENTS = 0x4064
"""Set 64, command 100: events."""
_BREAKPOINT, _STARTED, _ENDED = 2, 90, 99
_ONE_THREAD = 1
"""Suspends the thread of an event and no other; in a call: resumes no other."""
_ONLY_AT = 7
"""The modifier of an event that names a location."""
_NO_CODE = 0x0100 | 0x0400
"""Native and abstract methods."""
_NO_JVM = -1
"""In place of the error of a reply that will not come."""
_PRIMITIVES = {"V": "", "Z": "b", "B": "b", "C": "H", "S": "h", "I": "i", "F": "i", "J": "q", "D": "q"}
"""How to unpack them; floating-point numbers as their bits."""
_PARAMETER = re.compile(r"\[*(?:L[^;]+;|[ZBCSIFJD])")


class DebuggerFailed(Exception):
    """The JVM refuses a command, or does not answer."""


class DebuggedMethod(NamedTuple):
    owner: int
    id: int
    name: str
    signature: str
    flags: int

    @property
    def parameters(self) -> List[str]:
        """The letters of their types; an array is an object."""
        types = _PARAMETER.findall(self.signature[1 : self.signature.index(")")])
        return ["L" if type[0] == "[" else type[0] for type in types]

    @property
    def returns(self) -> str:
        return self.signature[self.signature.index(")") + 1]


class Stop(NamedTuple):
    """A thread that stands in front of the first instruction of a method."""

    thread: int
    """The id of the thread, which is an object."""
    method: DebuggedMethod


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, format: str) -> Any:
        form = struct.Struct(">" + format)
        (value,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return value

    def text(self) -> str:
        size = self.take("I")
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def value(self) -> JavaValue:
        letter = chr(self.take("B"))
        if letter not in _PRIMITIVES:
            return "L", self.take("Q")
        return letter, self.take(_PRIMITIVES[letter]) if _PRIMITIVES[letter] else 0


def _packed(value: JavaValue) -> bytes:
    letter, number = value
    return letter.encode() + (struct.pack(">" + _PRIMITIVES.get(letter, "Q"), number) if letter != "V" else b"")


def _text(text: str) -> bytes:
    return struct.pack(">I", len(text.encode())) + text.encode()


class Debugger:
    """Listens for the JVM that is started with ``option``, which connects to this process and opens no port itself.

    Other users of the machine are neither: the port stays bound until the JVM has ended, so that it connects to nobody else, and who
    connects must be a process of this user, which knows what this process has said to the JVM, see ``prove``.
    """

    def __init__(self, seconds: float = 60.0) -> None:
        """``seconds``: how long the JVM may take to connect, and to answer."""
        self._seconds = seconds
        self._server = socket.socket()
        self._server.bind(("127.0.0.1", 0))
        self._server.listen()
        self._socket: Optional[socket.socket] = None
        self._connected = threading.Event()
        self._sending = threading.Lock()
        self._last = 0
        self._waiting: Dict[int, queue.Queue[Tuple[int, bytes]]] = {}
        self._methods: Dict[Tuple[int, int], DebuggedMethod] = {}
        self._stops: queue.Queue[Stop] = queue.Queue()
        threading.Thread(target=self._receive, name="debugger", daemon=True).start()

    @property
    def option(self) -> str:
        """The option of the JVM that lets it connect here when it starts."""
        address = "127.0.0.1:{}".format(self._server.getsockname()[1])
        return "-agentlib:jdwp=transport=dt_socket,server=n,suspend=n,address=" + address

    def prove(self, thread_name: str) -> None:
        """Raise ``DebuggerFailed`` unless the peer has a thread of this name, a secret that was said to the JVM over another channel."""
        threads = self._ask(1, 4, b"")
        if thread_name not in [self.name_of(threads.take("Q")) for _ in range(threads.take("I"))]:
            raise DebuggerFailed("another program than the JVM has connected to the debugger")

    def next_stop(self) -> Stop:
        return self._stops.get()

    def methods(self, name: str) -> List[DebuggedMethod]:
        """The methods that a class declares, which must be loaded; none of a class that is not."""
        classes = self._ask(1, 2, _text("L{};".format(name.replace(".", "/"))))
        methods = []
        for _ in range(classes.take("I")):
            classes.take("B")
            owner = classes.take("Q")
            classes.take("I")
            declared = self._ask(2, 5, struct.pack(">Q", owner))
            for _ in range(declared.take("I")):
                methods.append(
                    DebuggedMethod(owner, declared.take("Q"), declared.text(), declared.text(), declared.take("I"))
                )
        return methods

    def stop_at(self, name: str, methods: Sequence[str]) -> int:
        """Let every thread stop at the methods of a class with these names. Return how many there are."""
        chosen = [method for method in self.methods(name) if method.name in methods and not method.flags & _NO_CODE]
        for method in chosen:
            self._methods[method.owner, method.id] = method
            location = struct.pack(">BQQQ", 1, method.owner, method.id, 0)
            self._ask(15, 1, struct.pack(">BBIB", _BREAKPOINT, _ONE_THREAD, 1, _ONLY_AT) + location)
        return len(chosen)

    def name_of(self, thread: int) -> str:
        return self._ask(11, 1, struct.pack(">Q", thread)).text()

    def classes_on_stack(self, thread: int) -> FrozenSet[int]:
        """The ids of the classes whose methods a stopped thread runs."""
        return frozenset(owner for _, owner in self._frames(thread, -1))

    def _frames(self, thread: int, most: int) -> List[Tuple[int, int]]:
        """The frames of a stopped thread, innermost first, each with its class. ``most``: -1 for all."""
        answer = self._ask(11, 6, struct.pack(">Qii", thread, 0, most))
        frames = []
        for _ in range(answer.take("I")):
            frame = answer.take("Q")
            answer.take("B")
            frames.append((frame, answer.take("Q")))
            answer.take("Q"), answer.take("Q")
        return frames

    def arguments(self, stop: Stop) -> Tuple[JavaValue, List[JavaValue]]:
        """``this`` of the method that is not static, and its arguments."""
        ((frame, _),) = self._frames(stop.thread, 1)
        slot, wanted = 0, b""
        letters = ["L", *stop.method.parameters]
        for letter in letters:
            wanted += struct.pack(">I", slot) + letter.encode()
            slot += 2 if letter in "JD" else 1
        answer = self._ask(16, 1, struct.pack(">QQI", stop.thread, frame, len(letters)) + wanted)
        values = [answer.value() for _ in range(answer.take("I"))]
        return values[0], values[1:]

    def string(self, text: str) -> JavaValue:
        return "L", self._ask(1, 11, _text(text)).take("Q")

    def call(self, thread: int, this: Optional[int], method: DebuggedMethod, *arguments: JavaValue) -> JavaValue:
        """Call a method in a stopped thread. ``this``: the object; None for a static method. Raises ``DebuggerFailed`` if it throws."""
        called = (
            struct.pack(">QQ", method.owner, thread)
            if this is None
            else struct.pack(">QQQ", this, thread, method.owner)
        )
        packed = struct.pack(">QI", method.id, len(arguments)) + b"".join(map(_packed, arguments))
        command = (3, 3) if this is None else (9, 6)
        answer = self._ask(*command, called + packed + struct.pack(">I", _ONE_THREAD))
        value, thrown = answer.value(), answer.value()
        if thrown[1]:
            raise DebuggerFailed("{} throws in the JVM".format(method.name))
        return value

    def end_with(self, stop: Stop, value: JavaValue) -> None:
        """Let the method return this, and the thread go on behind it."""
        self._ask(11, 14, struct.pack(">Q", stop.thread) + _packed(value))
        self.resume(stop)

    def resume(self, stop: Stop) -> None:
        self._ask(11, 3, struct.pack(">Q", stop.thread))

    def _ask(self, command_set: int, command: int, data: bytes) -> _Reader:
        if not self._connected.wait(self._seconds):
            raise DebuggerFailed("the JVM did not connect to the debugger within {:g} s".format(self._seconds))
        answers: queue.Queue[Tuple[int, bytes]] = queue.Queue()
        with self._sending:
            self._last += 1
            number = self._last
            self._waiting[number] = answers
            header = _HEADER.pack(_HEADER.size + len(data), number, 0, command_set << 8 | command)
            if self._socket is None:
                raise DebuggerFailed("the JVM has ended")
            self._socket.sendall(header + data)
        try:
            error, answer = answers.get(timeout=self._seconds)
        except queue.Empty:
            raise DebuggerFailed("the JVM did not answer the debugger within {:g} s".format(self._seconds)) from None
        if error == _NO_JVM:
            raise DebuggerFailed("the JVM has ended")
        if error:
            raise DebuggerFailed(
                "the JVM refuses command {}.{} of the debugger: error {}".format(command_set, command, error)
            )
        return _Reader(answer)

    def _receive(self) -> None:
        try:
            with self._server:
                while not self._connected.is_set():
                    connection, _ = self._server.accept()
                    with connection, suppress(OSError):  # it has ended
                        if is_of_this_user(connection):
                            self._talk(connection)
        finally:
            with self._sending:
                self._socket = None
                for answers in self._waiting.values():
                    answers.put((_NO_JVM, b""))

    def _talk(self, connection: socket.socket) -> None:
        connection.settimeout(self._seconds)
        connection.sendall(_HANDSHAKE)
        stream = connection.makefile("rb")
        if stream.read(len(_HANDSHAKE)) == _HANDSHAKE:
            connection.settimeout(None)
            self._socket = connection
            self._connected.set()
            self._receive_packets(stream)

    def _receive_packets(self, stream: Any) -> None:
        while True:
            header = stream.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return
            length, number, flags, code = _HEADER.unpack(header)
            data = stream.read(length - _HEADER.size)
            if flags & _REPLY:
                self._waiting.pop(number).put((code, data))
            elif code == _EVENTS:
                self._receive_events(_Reader(data))

    def _receive_events(self, events: _Reader) -> None:
        events.take("B")
        for _ in range(events.take("I")):
            kind = events.take("B")
            events.take("I")
            if kind == _STARTED:
                events.take("Q")
            elif kind == _BREAKPOINT:
                thread = events.take("Q")
                events.take("B")
                owner, method = events.take("Q"), events.take("Q")
                events.take("Q")
                self._stops.put(Stop(thread, self._methods[owner, method]))
            elif kind != _ENDED:
                raise DebuggerFailed("the JVM sent an event that was not requested, of kind {}".format(kind))
