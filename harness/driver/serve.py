"""Starts the engine, introduces it to the host, and passes each request to a handler in a thread of its own."""

from __future__ import annotations

import argparse
import glob
import json
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, Callable, Dict, List

from .backend import Backend
from .errors import DriverFailure, EngineLost, FailureReason, keep_origins, reason_of
from .jobs.main_program import end_jvm


class Channel:
    """JSON lines over the real standard input and output; other output (of the JVM, pyspark, a user's function) goes to standard error."""

    def __init__(self) -> None:
        self._sending = threading.Lock()
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        # A process that other code forks closes `sys.stdin`, and would wait for ever for the lock of a thread that reads it.
        self.requests = os.fdopen(os.dup(0), encoding="utf-8")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message of a kind. Safe to call from several threads."""
        fields["kind"] = kind
        line = json.dumps(fields, separators=(",", ":")) + "\n"
        with self._sending:
            self._out.write(line)
            self._out.flush()


Handler = Callable[[Channel, Backend, Dict[str, Any]], None]
"""Answers one request; what it raises is sent to the host as ``failed``."""

_MOST_AT_ONCE = 64
_ENGINE_LOST_EXIT = 70


def serve(arguments: List[str], answer: Handler) -> int:
    """Answer requests side by side, each in its own thread, until standard input ends. The host decides how many run at once.

    ``arguments``: ``[--shared] [--storage URL] WORK [KEY=VALUE …]``. With ``--shared``, other users of the machine can change what the
    driver writes: their engines may resume a query. ``--storage`` is the URL of a directory that holds the directories of cases;
    without it they are on this machine.
    """
    channel = Channel()
    # One Python thread is one JVM thread, because the active session belongs to a thread. Spark 3.2 and newer do this by default.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    try:
        find_pyspark()
        backend = _start(arguments, channel)
        channel.send("hello", identity=backend.identity(), slots=backend.slots())
        backend.watch(lambda failure: _end(channel, failure))
    except Exception as error:
        channel.send("failed", reason=reason_of(error, starting=True), message=_message(error))
        return 3
    threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="case")
    for line in channel.requests:
        threads.submit(_answer, channel, backend, answer, json.loads(line))
    # The host has closed our standard input or was killed, so nobody reads the rest. The JVM ends with this process.
    end_jvm()
    sys.stderr.flush()
    os._exit(0)


def find_pyspark() -> None:
    """Make the pyspark of an unpacked Spark importable, as Spark's own ``bin/pyspark`` does, unless one is installed.

    Images have it in ``SPARK_HOME`` or ``/opt/spark`` and set no ``PYTHONPATH``. Raises ``DriverFailure`` if there is none.
    """
    if find_spec("pyspark") is not None:
        return
    home = os.environ.get("SPARK_HOME") or "/opt/spark"
    sys.path[1:1] = [home + "/python", *glob.glob(home + "/python/lib/py4j-*-src.zip")]
    if find_spec("pyspark") is None:
        nowhere = "{} finds no pyspark, and there is none in {}/python".format(sys.executable, home)
        raise DriverFailure(nowhere, FailureReason.PYSPARK_MISSING)


def _start(arguments: List[str], channel: Channel) -> Backend:
    from . import outage
    from .classic import Classic
    from .connect import Connect
    from .session import remember

    keep_origins()
    parser = argparse.ArgumentParser(prog="driver")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--storage")
    parser.add_argument("work")
    parser.add_argument("settings", nargs="*")
    options = parser.parse_args(arguments)
    if options.shared:
        os.umask(0)
    # No arguments: they may hold secrets, and every user of the machine can read arguments.
    url = os.environ.pop("CONFORMANCE_ENDPOINT", None)
    storage = os.environ.pop("CONFORMANCE_STORAGE", None) or options.storage
    hidden: Dict[str, str] = json.loads(os.environ.pop("CONFORMANCE_SETTINGS", "{}"))
    if url:
        return Connect(url, lambda why: _end(channel, why), storage)
    remember()
    settings, started = dict(setting.split("=", 1) for setting in options.settings), threading.Event()
    master = {**settings, **hidden}.get("spark.master", "")
    outage.watch(lambda: outage.no_master(master), lambda why: _end(channel, why), FailureReason.NO_EXECUTORS, started)
    try:
        return Classic(options.work, settings, storage, hidden)
    finally:
        started.set()


def _answer(channel: Channel, backend: Backend, answer: Handler, request: Dict[str, Any]) -> None:
    try:
        answer(channel, backend, request)
    except BaseException as error:  # a SystemExit would end this thread without an answer to the host
        if isinstance(error, EngineLost) or not backend.is_alive():
            _end(channel, EngineLost("{}: {}".format(type(error).__name__, error)))
        channel.send("failed", case=request["case"], reason=reason_of(error), message=_message(error))


def _end(channel: Channel, failure: DriverFailure) -> None:
    """End this process, because the engine is lost. The message names no case: every case in this engine is affected."""
    channel.send("failed", reason=failure.reason, message=str(failure))
    end_jvm()
    os._exit(_ENGINE_LOST_EXIT)


def _message(error: BaseException) -> str:
    """A known failure says everything itself; anything else needs its traceback."""
    return str(error) if reason_of(error) is not FailureReason.DRIVER_ERROR else traceback.format_exc()
