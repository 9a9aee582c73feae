"""The daemon's frames, taken apart into lines: a socket pair plays the daemon."""

import socket
import struct
import threading
from types import SimpleNamespace

import docker.errors
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engine.transport import TransportClosed
from harness.runtimes.containers.runtime import AttachedTransport

OUT, ERR = 1, 2


class Container:
    """A container whose other end the test holds."""

    id = "c1"

    def __init__(self, state=None):
        self.here, self.there = socket.socketpair()
        self.attrs = {"State": state or {"ExitCode": 0, "OOMKilled": False}}
        self.removed = 0
        self.client = SimpleNamespace(api=self)

    def attach_socket(self, id, params):
        assert params == {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        return socket.SocketIO(self.here, "rw")

    def _disable_socket_timeout(self, sock):
        pass

    def start(self):
        pass

    def unpause(self):
        raise docker.errors.APIError("not paused")

    def wait(self, timeout):
        pass

    def reload(self):
        pass

    def remove_container(self, id, force, v):
        assert (id, force, v) == ("c1", True, True)
        self.removed += 1
        self.there.close()


def frame(stream, data):
    return struct.pack(">BxxxL", stream, len(data)) + data


def link_to(container):
    transport = AttachedTransport(container, memory="3g")
    transport.start()
    return transport


@given(
    st.lists(
        st.tuples(
            st.sampled_from([OUT, ERR]), st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=20)
        )
    ),
    st.integers(1, 7),
)
def test_lines_come_whole_however_they_are_cut(lines, size):
    container = Container()
    transport = link_to(container)
    pending = {OUT: b"", ERR: b""}
    for stream, text in lines:
        pending[stream] += text.encode() + b"\n"

    def daemon():
        while any(pending.values()):
            for stream, data in pending.items():
                if data:
                    container.there.sendall(frame(stream, data[:size]))
                    pending[stream] = data[size:]
        container.there.close()

    thread = threading.Thread(target=daemon)
    thread.start()
    assert list(transport.answers()) == [text for stream, text in lines if stream == OUT]
    assert list(transport.log()) == [text for stream, text in lines if stream == ERR]
    thread.join()
    transport.close()


def test_a_last_line_without_its_end_is_a_line():
    container = Container()
    transport = link_to(container)
    container.there.sendall(frame(OUT, b"one\ntw") + frame(OUT, b"o"))
    container.there.close()
    assert list(transport.answers()) == ["one", "two"]
    assert list(transport.log()) == []


def test_what_is_written_arrives_as_a_line():
    container = Container()
    transport = link_to(container)
    transport.write("ask")
    assert container.there.recv(10) == b"ask\n"
    transport.close()
    with pytest.raises(TransportClosed):
        transport.write("more")


def test_it_is_removed_once_and_both_readers_end():
    container = Container()
    transport = link_to(container)
    transport.close()
    transport.close()
    assert container.removed == 1
    assert list(transport.answers()) == []
    assert list(transport.log()) == []


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"ExitCode": 3, "OOMKilled": False}, "exit code 3"),
        ({"ExitCode": 137, "OOMKilled": False}, "signal SIGKILL"),
        ({"ExitCode": 255, "OOMKilled": False}, "exit code 255"),
        (
            {"ExitCode": 70, "OOMKilled": True},
            "its container out of memory: the limit is 3g, --memory raises it",
        ),
    ],
)
def test_how_it_ended(state, told):
    container = Container(state)
    transport = link_to(container)
    assert transport.ending() == told
    transport.close()


def test_a_container_removed_by_another_process():
    container = Container()
    container.wait = lambda timeout: (_ for _ in ()).throw(docker.errors.NotFound("gone"))
    transport = link_to(container)
    assert transport.ending() == "its container removed by another process"
    transport.close()
