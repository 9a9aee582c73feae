"""A daemon at the other end of a network, where nothing of this machine could be mounted: files get there by copy."""

import socket
import threading

import pytest

from reports.results.reading import Results
from tests.container.conftest import SMOKE
from tests.support.effort import full_run_only

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def address(daemon):
    """Where the daemon's socket answers over TCP."""
    if not daemon.api.base_url.startswith("http+docker://localhost"):
        pytest.skip("the daemon is not on this machine's socket, so it is remote already")
    path = daemon.api.get_adapter("http+docker://localhost").socket_path
    listener = socket.create_server(("127.0.0.1", 0))
    opened = []

    def pass_on(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(path)
            opened.extend((client, there))
            for ends in ((client, there), (there, client)):
                threading.Thread(target=pass_on, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    for end in opened:
        end.close()


@full_run_only
def test_a_run_over_the_network(conformance, address, spark_35, tmp_path):
    image = f"3.5.9={spark_35}"
    arguments = ("run", SMOKE, "--spark", "3.5.9", "--runtime", "container", "--image", image)
    run = conformance(*arguments, "--work", tmp_path / "work", DOCKER_HOST=address)
    assert run.code == 0, run.out + run.said
    assert [cell.status for cell in Results.read(tmp_path / "results.jsonl").cells] == ["conforms"]
    assert (tmp_path / "work" / "spark-3.5.9-1" / "engine" / "driver" / "__main__.py").is_file()
