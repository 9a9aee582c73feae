"""Each Python thread has its own connections to the JVM, and with them its own JVM threads."""

import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from harness.driver.session import pin_threads


class ClientServer:
    """py4j's gateway of pinned threads."""


class GatewayClient:
    """As py4j's: any idle connection, else a new one."""

    def __init__(self):
        self.deque = deque()
        self.made = 0

    def get(self):
        try:
            return self.deque.pop()
        except IndexError:
            self.made += 1
            return self.made

    def give_back(self, connection):
        self.deque.append(connection)


@pytest.fixture(autouse=True)
def py4j(monkeypatch):
    monkeypatch.setitem(sys.modules, "py4j.clientserver", SimpleNamespace(ClientServer=ClientServer))


def connections(client, threads=4, calls=20):
    """The connections that each of several threads gets, one call after the other, all threads at once."""
    together = threading.Barrier(threads)

    def call(_):
        together.wait(60)
        got = set()
        for _ in range(calls):
            connection = client.get()
            together.wait(60)  # all threads are in a call
            got.add(connection)
            client.give_back(connection)
            together.wait(60)
        return got

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, range(threads)))


def test_a_thread_keeps_its_connection():
    client = GatewayClient()
    pin_threads(SimpleNamespace(_gateway_client=client))
    found = connections(client)
    assert [len(one) for one in found] == [1] * 4
    assert len(set.union(*found)) == 4


def test_one_that_collects_an_object_in_the_middle_of_a_call_has_two_and_goes_on_with_the_first():
    client = GatewayClient()
    pin_threads(SimpleNamespace(_gateway_client=client))
    calling = client.get()
    client.give_back(client.get())
    assert len(client.deque) == 1
    client.give_back(calling)
    assert client.get() == calling
    assert client.made == 2


def test_a_gateway_that_pins_its_threads_stays_as_it_is():
    gateway = ClientServer()
    pin_threads(gateway)
    assert vars(gateway) == {}
