"""Runs the main method of a class in the author's jars: its sources are streams of the case, and none of its queries starts.

A debugger stops the threads of that program at the methods of Spark that make a session, read a stream, start a query or wait for
its end, before these do anything, and lets them return what `program` says. No class of Spark or of the author's is changed.
"""

from __future__ import annotations

import glob
import itertools
import os
import queue
import secrets
import subprocess
import threading
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..session import session_class
from . import jvm_methods
from .debugger import NOTHING, NULL, DebuggedMethod, Debugger, DebuggerFailed, JavaValue, Stop
from .program import OF_TABLES, EndedQuery, ProgramRun, ProgramSource, WithoutEnd, set_options

DEBUGGER = "spark.conformance.debugger"
"""Whether the JVM is debugged, so that a main method of the author's jars can run in it."""
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LIBRARIES = ("lib/libjdwp.*", "lib/*/libjdwp.*", "bin/jdwp.dll")
"""Where the agent is in the home of a Java, which is the folder ``jre`` of a JDK 8; there it is in a folder named after the processor."""
_SECONDS_TO_END = 5.0
_KEY = "conformance.box"
_PACKAGES = ("org.apache.spark.sql.classic.", "org.apache.spark.sql.")
"""Where the classes of a session are: since 4.0, and before."""
_STREAMING = ("org.apache.spark.sql.classic.", "org.apache.spark.sql.streaming.")
_TRIGGERS = {
    "ProcessingTimeTrigger": "default",
    "OneTimeTrigger": "once",
    "AvailableNowTrigger": "availableNow",
    "ContinuousTrigger": "continuous",
    "RealTimeTrigger": "realTime",
}


def attach(settings: Dict[str, str]) -> None:
    """Let the JVM that is started with these settings connect to a debugger, if they ask for one and its Java can."""
    wanted = settings.pop(DEBUGGER, "false") == "true"
    home = os.environ.get("JAVA_HOME", "")
    if wanted and home and any(glob.glob(os.path.join(home, library)) for library in _LIBRARIES):
        debugger = Debugger()
        settings[JAVA_OPTIONS] = "{} {}".format(settings.get(JAVA_OPTIONS, ""), debugger.option).strip()
        _engine.append(debugger)


def run(named: str, arguments: Sequence[str], session: Any, read: Callable[[ProgramSource], Any]) -> ProgramRun:
    """Call ``named.main(arguments)`` until it returns or exits. Return what it read and would have started.

    ``read``: makes the DataFrame of a source. Raises what it throws; and ``SystemExit`` if it exits with another status than 0.

    Raises:
        NotCallable: the class has no main method, or this engine cannot run it.
        WithoutEnd: it starts queries, or waits for them, again and again.
    """
    if getattr(session, "_jsparkSession", None) is None:
        raise jvm_methods.NotCallable("through Connect no main method can be called")
    if not _engine:
        what = "this Java has no debugger (libjdwp), with which a main method is held: point JAVA_HOME at another Java"
        raise jvm_methods.NotCallable(what)
    jvm_methods.check_main(named, session)
    with _one_at_a_time:
        if isinstance(_engine[0], Debugger):
            _engine[0] = _Holder(_engine[0], session)
        return _MainRun(named, arguments, session, read).of(_engine[0])


def end_jvm() -> None:
    """End a JVM that holds threads of a program before this process, the debugger, lets them go: they would start their queries."""
    if _engine and isinstance(_engine[0], _Holder):
        from pyspark import SparkContext

        process = SparkContext._gateway.proc
        # It does not answer: it ends.
        threading.Thread(target=SparkContext._jvm.java.lang.System.exit, args=(0,), daemon=True).start()
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:  # it waits for a thread that stands still
            process.kill()
            process.wait()


_engine: List[Any] = []
"""The debugger of the JVM of this process, or its holder; empty without one."""
_one_at_a_time = threading.Lock()
_numbers = itertools.count(1)


class _Stopped(NamedTuple):
    """A stop at a method, with objects of the JVM."""

    this: Any
    thread: Any
    arguments: List[Any]
    method: DebuggedMethod

    def field(self, name: str) -> Any:
        """The value of a private field, of the class of the object or one above it; None if there is none."""
        owner = self.this.getClass()
        while owner is not None:
            for field in owner.getDeclaredFields():
                if field.getName() == name:
                    field.setAccessible(True)
                    return field.get(self.this)
            owner = owner.getSuperclass()
        return None


def _options(texts: Any) -> Dict[str, str]:
    """A Scala map of texts."""
    items, options = texts.iterator(), {}
    while items.hasNext():
        item = items.next()
        options[str(item._1())] = str(item._2())
    return options


class _MainRun:
    def __init__(
        self, named: str, arguments: Sequence[str], session: Any, read: Callable[[ProgramSource], Any]
    ) -> None:
        self.session = session
        self.thread = "main of {}, run {}".format(named, next(_numbers))
        self._named = named
        self._arguments = arguments
        self._at: Optional[str] = None
        self._program = ProgramRun(session, read, lambda: self._at)
        self._ended: queue.Queue[Optional[BaseException]] = queue.Queue()

    def of(self, holder: _Holder) -> ProgramRun:
        holder.run = self
        # A program that has exited, or never ends, stands still for ever, and with it this thread.
        threading.Thread(target=self._call, name=self.thread, daemon=True).start()
        error = self._ended.get()
        holder.run = None
        if error is not None:
            raise error
        return self._program

    def end(self, error: Optional[BaseException] = None) -> None:
        """What comes first counts."""
        self._ended.put(error)

    def _call(self) -> None:
        from py4j.java_gateway import JavaClass

        try:
            gateway, jvm = self.session.sparkContext._gateway, self.session._jvm
            session_class(self.session).setActiveSession(self.session._jsparkSession)
            given = gateway.new_array(jvm.java.lang.String, len(self._arguments))
            for at, argument in enumerate(self._arguments):
                given[at] = argument
            jvm.java.lang.Thread.currentThread().setName(self.thread)
            JavaClass(self._named, gateway._gateway_client).main(given)
            self.end()
        except BaseException as error:
            self.end(error)

    def instead(self, stop: _Stopped) -> Any:
        """What the method that a thread of the program calls returns; ``_StandStill`` if the thread must not go on."""
        self._at = jvm_methods.place(list(stop.thread.getStackTrace()))
        try:
            return _INSTEAD[stop.method.name](self, stop)
        except _StandStill:
            raise
        except BaseException as error:
            self.end(error)
            raise _StandStill from error

    def load(self, stop: _Stopped) -> Any:
        from pyspark.sql.types import _parse_datatype_json_string

        format = stop.method.name if stop.method.name in OF_TABLES else str(stop.field("source")).lower()
        options = _options(stop.field("extraOptions"))
        noted: Dict[str, Any] = {"options": options}
        # `option("path", …)` and `load(…)` say the same.
        path = next(iter(stop.arguments), None) or options.pop("path", None)
        schema = stop.field("userSpecifiedSchema")
        if schema.isDefined():
            noted["schema"] = _parse_datatype_json_string(schema.get().json())
        name = stop.field("userProvidedSourceName")
        if name is not None and name.isDefined():
            noted["name"] = name.get()
        return self._program.load(noted, format, path, None)._jdf

    def start(self, stop: _Stopped) -> Any:
        from pyspark.sql import DataFrame

        frame = stop.field("ds").toDF()
        if not frame.sparkSession().equals(self.session._jsparkSession):
            raise jvm_methods.NotCallable(
                "{} starts a query of another session than SparkSession.builder().getOrCreate() returns in this run: let its main method "
                "ask for the session, and no static field keep it".format(self._named)
            )
        wrapped = DataFrame(frame, getattr(self.session, "_wrapped", self.session))  # up to 3.2 it wants the SQLContext
        trigger = str(stop.field("trigger").getClass().getSimpleName()).rstrip("$")
        options = _options(stop.field("extraOptions"))
        noted = {
            "outputMode": str(stop.field("outputMode").toString()),
            "queryName": options.pop("queryname", None),
            "options": {**options, "trigger": str(stop.field("trigger"))},
            "trigger": _TRIGGERS.get(trigger, trigger),
            "format": str(stop.field("source")),
        }
        table = "table" if stop.method.name == "toTable" else None
        path = {"path": next(iter(stop.arguments), None)}
        return _JavaQuery(self, self._program.start(SimpleNamespace(_df=wrapped), noted, table, path))

    def session_of(self, stop: _Stopped) -> Any:
        set_options(self.session, _options(stop.field("options")))
        return self.session._jsparkSession

    def wait(self, stop: _Stopped) -> Any:
        return self._program.waited(next(iter(stop.arguments), None))

    def waited(self, query: EndedQuery, timeout: Optional[int]) -> Optional[bool]:
        try:
            return query.awaitTermination(timeout)
        except WithoutEnd as error:
            self.end(error)
            return threading.Event().wait()

    def exit(self, stop: _Stopped) -> Any:
        (status,) = stop.arguments
        self.end(SystemExit(status) if status else None)
        raise _StandStill

    def nothing(self, _: _Stopped) -> Any:
        return None


class _StandStill(Exception):
    """The thread must not go on: its program has ended."""


class _JavaQuery:
    """Stands for a query that the program has started: it has ended. The JVM calls its methods."""

    class Java:
        implements = ["org.apache.spark.sql.streaming.StreamingQuery"]  # noqa: RUF012

    def __init__(self, run: _MainRun, query: EndedQuery) -> None:
        self._run = run
        self._query = query
        self._jvm = run.session._jvm

    def name(self) -> Optional[str]:
        return self._query.name

    def id(self) -> Any:
        return self._jvm.java.util.UUID.fromString(self._query.id)

    def runId(self) -> Any:  # noqa: N802
        return self._jvm.java.util.UUID.fromString(self._query.runId)

    def sparkSession(self) -> Any:  # noqa: N802
        return self._run.session._jsparkSession

    def isActive(self) -> bool:  # noqa: N802
        return False

    def exception(self) -> Any:
        return self._jvm.scala.Option.empty()

    def status(self) -> Any:
        return self._jvm.org.apache.spark.sql.streaming.StreamingQueryStatus("Stopped", False, False)

    def recentProgress(self) -> Any:  # noqa: N802
        progress = self._jvm.org.apache.spark.sql.streaming.StreamingQueryProgress
        return self._run.session.sparkContext._gateway.new_array(progress, 0)

    def lastProgress(self) -> None: ...  # noqa: N802

    def awaitTermination(self, timeout: Optional[int] = None) -> Optional[bool]:  # noqa: N802
        return self._run.waited(self._query, timeout)

    def processAllAvailable(self) -> None:  # noqa: N802
        self._run.waited(self._query, None)

    def stop(self) -> None: ...

    def explain(self, extended: bool = False) -> None: ...

    def toString(self) -> str:  # noqa: N802
        return "StreamingQuery({}, ended)".format(self._query.id)

    def hashCode(self) -> int:  # noqa: N802
        return hash(self._query.id) % (1 << 31)

    def equals(self, other: Any) -> bool:
        return other is self


def _missed(_: _MainRun, stop: _Stopped) -> Any:
    raise jvm_methods.NotCallable(
        "a query starts in a way that cannot be held, by {}. Nothing was started".format(stop.method.name)
    )


_Instead = Callable[[_MainRun, _Stopped], Any]
_HELD: Sequence[Tuple[Sequence[str], str, Dict[str, _Instead]]] = (
    (_STREAMING, "DataStreamReader", dict.fromkeys(("load", *OF_TABLES), _MainRun.load)),
    (_STREAMING, "DataStreamWriter", {"start": _MainRun.start, "toTable": _MainRun.start}),
    (
        _STREAMING,
        "StreamingQueryManager",
        {
            "awaitAnyTermination": _MainRun.wait,
            "addListener": _MainRun.nothing,
            "removeListener": _MainRun.nothing,
            "resetTerminated": _MainRun.nothing,
            "startQuery": _missed,
        },
    ),
    (_PACKAGES, "SparkSession$Builder", {"getOrCreate": _MainRun.session_of, "create": _MainRun.session_of}),
    (_PACKAGES, "SparkSession", {"stop": _MainRun.nothing, "close": _MainRun.nothing}),
    (("org.apache.spark.",), "SparkContext", {"stop": _MainRun.nothing}),
    (("java.lang.",), "Runtime", {"exit": _MainRun.exit, "halt": _MainRun.exit}),
)
"""Where a class may be, its name, and what each method that is held does in place of itself."""
_NEWER = {"create", "table", "changes", "toTable"}
"""Methods that not every version of Spark has."""
_INSTEAD = {name: instead for _, _, methods in _HELD for name, instead in methods.items()}
_AFTER_THE_END = ("start", "toTable", "startQuery", "exit", "halt")
"""What threads of a program that has ended must not do: they stand still."""


class _Holder:
    """Holds the programs of this engine, one after the other."""

    def __init__(self, debugger: Debugger, session: Any) -> None:
        self.run: Optional[_MainRun] = None
        self._debugger = debugger
        self._jvm = session._jvm
        self._box = self._jvm.java.util.ArrayList()
        """Hands objects over between py4j and the debugger, which have names of their own for them."""
        self._answering = threading.Lock()
        self._box_id: Optional[int] = None
        self._nothing = self._jvm.java.util.Collections.emptyList()
        self._known: Dict[str, DebuggedMethod] = {}
        secret = secrets.token_hex(32)
        self._jvm.java.lang.Thread.currentThread().setName(secret)
        debugger.prove(secret)
        self._of_py4j = {method.owner for method in debugger.methods("py4j.Gateway")}
        for packages, name, methods in _HELD:
            names = [package + name for package in packages]
            loaded = [known for known in names if jvm_methods.java_class(self._jvm, known) is not None]
            missing = set(methods) - _NEWER
            for known in loaded:
                debugger.stop_at(known, list(methods))
                missing -= {method.name for method in debugger.methods(known)}
            if not loaded or missing:
                raise DebuggerFailed("{} has no {}".format(name, ", ".join(sorted(missing))))
        threading.Thread(target=self._hold, name="main programs", daemon=True).start()

    def _hold(self) -> None:
        while True:
            stop, run = self._debugger.next_stop(), self.run
            if self._is_of_the_driver(stop.thread, run) or (run is None and stop.method.name not in _AFTER_THE_END):
                self._debugger.resume(stop)
            elif run is not None:
                # What takes the place of the method calls Spark, and so stops here itself.
                threading.Thread(target=self._answer, args=(stop, run), daemon=True).start()

    def _answer(self, stop: Stop, run: _MainRun) -> None:
        with self._answering:
            try:
                value = run.instead(self._with_objects(stop))
                self._debugger.end_with(stop, self._value(value, stop))
            except _StandStill:
                pass
            except BaseException as error:  # the thread stands still
                run.end(error)

    def _is_of_the_driver(self, thread: int, run: Optional[_MainRun]) -> bool:
        """Whether py4j calls in this thread, and not for the program."""
        if run is not None and self._debugger.name_of(thread) == run.thread:
            return False
        return bool(self._debugger.classes_on_stack(thread) & self._of_py4j)

    def _with_objects(self, stop: Stop) -> _Stopped:
        holder, arguments = self._debugger.arguments(stop)
        objects = [holder, ("L", stop.thread), *[value for value in arguments if value[0] == "L"]]
        self._box.retainAll(self._nothing)  # `clear` of py4j 0.10 fails
        for value in objects:
            self._call(stop, "java.util.ArrayList", "add(Ljava/lang/Object;)Z", self._box_in(stop), value)
        this, thread, *others = [self._box.get(at) for at in range(len(objects))]
        taken = iter(others)
        values = [next(taken) if letter == "L" else value for letter, value in arguments]
        return _Stopped(this, thread, values, stop.method)

    def _value(self, value: Any, stop: Stop) -> JavaValue:
        kind = stop.method.returns
        if kind == "V":
            return NOTHING
        if kind == "Z":
            return "Z", int(value)
        if value is None:
            return NULL
        self._box.retainAll(self._nothing)
        self._box.add(value)
        box = self._box_in(stop)
        return self._call(stop, "java.util.ArrayList", "get(I)Ljava/lang/Object;", box, ("I", 0))

    def _box_in(self, stop: Stop) -> int:
        """The debugger's id of the box, which finds it among the properties of the JVM."""
        if self._box_id is None:
            properties = self._jvm.java.lang.System.getProperties()
            properties.put(_KEY, self._box)
            _, table = self._call(stop, "java.lang.System", "getProperties()Ljava/util/Properties;", None)
            key = self._debugger.string(_KEY)
            get = "get(Ljava/lang/Object;)Ljava/lang/Object;"
            _, self._box_id = self._call(stop, "java.util.Hashtable", get, table, key)
            properties.remove(_KEY)
        return self._box_id

    def _call(self, stop: Stop, owner: str, method: str, this: Optional[int], *arguments: JavaValue) -> JavaValue:
        if method not in self._known:
            declared = {known.name + known.signature: known for known in self._debugger.methods(owner)}
            self._known[method] = declared[method]
        return self._debugger.call(stop.thread, this, self._known[method], *arguments)
