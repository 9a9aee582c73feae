"""Whether what runs the queries is there: a server that takes connections, a cluster that gives executors.

Spark waits for both without an end and without a word.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple
from urllib.request import ProxyHandler, build_opener

from .errors import DriverFailure, FailureReason

_LOOK_SECONDS = 1.0
_CERTAIN_SECONDS = 8.0
_UNKNOWN_SECONDS = 120.0


class Outage(NamedTuple):
    """What is not there, in words, and for how many seconds that must last until it is the cause."""

    what: str
    patience: float = _CERTAIN_SECONDS


Lost = Callable[[DriverFailure], None]
Look = Callable[[], Optional[Outage]]
"""Returns the outage at this moment; None without one."""


def lasting(look: Look, goes_on: Callable[[], bool]) -> Optional[str]:
    """Look until an outage has lasted, and return what it is; None if what was waited for does not go on any more."""
    since: Optional[float] = None
    while goes_on():
        outage = look()
        now = time.monotonic()
        if outage is None:
            since = None
        else:
            since = now if since is None else since
            if now - since >= outage.patience:
                return outage.what
    return None


def watch(look: Look, lost: Lost, reason: FailureReason, until: Optional[threading.Event] = None) -> None:
    """From now on, ``until`` an event, call ``lost``, once, from another thread, if an outage lasts."""
    over = until or threading.Event()

    def goes_on() -> bool:
        return not over.wait(_LOOK_SECONDS)

    def watching() -> None:
        try:
            what = lasting(look, goes_on)
        except Exception:  # the JVM does not answer: that is what the cases that it runs report
            return
        if what is not None:
            lost(DriverFailure(what, reason))

    threading.Thread(target=watching, name="outage", daemon=True).start()


def refusal(host: str, port: int) -> Optional[str]:
    """Why the port takes no connection, in the words of the system; None if it takes one."""
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def first_executor(context: Any) -> None:
    """Wait until the cluster of a ``SparkContext`` runs a job.

    Raises:
        TimeoutError: it gives no executor; the message is why, as far as its master says it.
    """
    raised: List[BaseException] = []

    def run() -> None:
        try:
            context.parallelize([0], 1).count()
        except BaseException as error:
            raised.append(error)

    def goes_on() -> bool:
        job.join(1.0)
        return job.is_alive()

    job = threading.Thread(target=run, name="first job", daemon=True)
    job.start()
    what = lasting(lambda: no_executor(context, _CERTAIN_SECONDS / 2), goes_on)
    if what is not None:
        raise TimeoutError(what)
    if raised:
        raise raised[0]


def no_executor(context: Any, certain: float = _CERTAIN_SECONDS) -> Optional[Outage]:
    """The outage while jobs of a ``SparkContext`` wait for the first executor of its cluster, and it starts none."""
    if executors(context) or not context.statusTracker().getActiveJobsIds():
        return None
    none = "{} gives no executor".format(context.master)
    if not context.master.startswith("spark://"):
        return Outage(none, _UNKNOWN_SECONDS)
    state = _of_master(context)
    if state is None:
        return no_master(context.master) or Outage(none + ", and its master does not say why", _UNKNOWN_SECONDS)
    if any(app["cores"] for app in state["activeapps"] if app["id"] == context.applicationId):
        return None  # a worker starts it
    workers = [worker for worker in state["workers"] if worker["state"] == "ALIVE"]
    free, cores, memory = (sum(worker[key] for worker in workers) for key in ("coresfree", "cores", "memoryfree"))
    if not workers:
        return Outage(none + ": it has no worker", certain)
    return Outage(
        "{}: workers: {}, with {} of {} cores and {} MiB free".format(none, len(workers), free, cores, memory), certain
    )


def no_master(url: str) -> Optional[Outage]:
    """The outage while no master of a standalone cluster takes a connection: Spark itself tries to register for a minute."""
    return none_listens(url[len("spark://") :], "spark://{}") if url.startswith("spark://") else None


def none_listens(addresses: str, name: str) -> Optional[Outage]:
    """The outage while none of some addresses takes a connection: ``host:port,host:port``; ``name`` has a place for them."""
    whys = [refusal(*_host_and_port(address)) for address in addresses.split(",")]
    return Outage("{} takes no connection: {}".format(name.format(addresses), whys[-1])) if all(whys) else None


def executors(context: Any) -> str:
    """The ids of the executors of a ``SparkContext``, separated by spaces."""
    return str(context._jsc.sc().getExecutorIds().mkString(" "))


def _of_master(context: Any) -> Optional[Dict[str, Any]]:
    """What the active master shows in JSON beside its page; None if none does. Source: ``MasterPage.renderJson``, ``JsonProtocol``."""
    for address in context.master[len("spark://") :].split(","):
        try:
            host, port = _host_and_port(address)
            if refusal(host, port) is not None:
                continue
            url = "http://{}:{}/json/".format(host, _port_of_page(context, host, port))
            with build_opener(ProxyHandler({})).open(url, timeout=5) as answer:
                state: Dict[str, Any] = json.load(answer)
            if state["status"] == "ALIVE":
                return state
        except Exception:  # it is not this application's to look at: a proxy, TLS, access lists
            continue
    return None


def _host_and_port(address: str) -> Tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _port_of_page(context: Any, host: str, port: int) -> int:
    """Ask the master, as Spark's own tests do. Source: ``MasterMessages.BoundPortsRequest``."""
    jvm = context._jvm

    def the(name: str) -> Any:
        return jvm.java.lang.Class.forName(name + "$").getField("MODULE$").get(None)

    # Reflection on SparkEnv, which has it too, fails from 4.3 on: a method needs a class of protobuf that PySpark does not have.
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    master = rpc.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, port), "Master")
    request = the("org.apache.spark.deploy.master.MasterMessages$BoundPortsRequest")
    return int(master.askSync(request, the("scala.reflect.ClassTag").Any()).webUIPort())
