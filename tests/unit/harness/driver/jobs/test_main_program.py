"""A main method is held at the methods of Spark that it calls: fakes stand for py4j and the debugger, a thread of Python for the JVM's."""

import itertools
import queue
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.jobs import jvm_methods, main_program
from harness.driver.jobs.debugger import NOTHING, NULL, DebuggedMethod, Debugger, DebuggerFailed, Stop
from harness.driver.jobs.jvm_methods import NotCallable
from harness.driver.jobs.program import ProgramSource, WithoutEnd

PY4J, GONE = 99, object()
STREAMING, SQL = "org.apache.spark.sql.streaming.", "org.apache.spark.sql."
METHODS = {
    STREAMING + "DataStreamReader": {"load": "L", "table": "L", "changes": "L"},
    STREAMING + "DataStreamWriter": {"start": "L", "toTable": "L"},
    STREAMING + "StreamingQueryManager": {
        "awaitAnyTermination": "Z",
        "addListener": "V",
        "removeListener": "V",
        "resetTerminated": "V",
        "startQuery": "L",
    },
    SQL + "SparkSession$Builder": {"getOrCreate": "L"},
    SQL + "SparkSession": {"stop": "V", "close": "V"},
    "org.apache.spark.SparkContext": {"stop": "V"},
    "java.lang.Runtime": {"exit": "V", "halt": "V"},
    "java.util.ArrayList": {"add(Ljava/lang/Object;)Z": "Z", "get(I)Ljava/lang/Object;": "L"},
    "java.util.Hashtable": {"get(Ljava/lang/Object;)Ljava/lang/Object;": "L"},
    "java.lang.System": {"getProperties()Ljava/util/Properties;": "L"},
    "py4j.Gateway": {"invoke": "L"},
}
"""The classes of a JVM with Spark 3: for each, its methods and the letters of what they return."""


class Java:
    """An object of the JVM with private fields, of which those named in ``above`` are of the class above its own."""

    def __init__(self, above=(), **fields):
        self.fields, self.above = fields, above

    def getClass(self):  # noqa: N802
        def of(names, parent):
            declared = [
                SimpleNamespace(getName=lambda name=name: name, setAccessible=lambda _: None, get=self._get(name))
                for name in names
            ]
            return SimpleNamespace(getDeclaredFields=lambda: declared, getSuperclass=lambda: parent)

        return of([name for name in self.fields if name not in self.above], of(self.above, None))

    def _get(self, name):
        return lambda of: of.fields[name]


def scala_map(**items):
    """A map of texts of Scala."""

    def iterator():
        left = [SimpleNamespace(_1=lambda key=key: key, _2=lambda value=value: value) for key, value in items.items()]
        return SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))

    return SimpleNamespace(iterator=iterator)


def option(value=None):
    return SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)


def reader(source="json", schema=None, name=None, **options):
    said = option(SimpleNamespace(json=lambda: schema) if schema else None)
    fields = {"source": source, "extraOptions": scala_map(**options), "userSpecifiedSchema": said}
    return Java(above=("extraOptions",), **fields, userProvidedSourceName=option(name))


def writer(frame, source="parquet", mode="Append", trigger="ProcessingTimeTrigger", **options):
    of_trigger = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: trigger))
    of_mode = SimpleNamespace(toString=lambda: mode)
    dataset = SimpleNamespace(toDF=lambda: frame)
    return Java(ds=dataset, source=source, outputMode=of_mode, trigger=of_trigger, extraOptions=scala_map(**options))


class List(list):
    add = list.append

    def get(self, at):
        return self[at]

    def retainAll(self, others):  # noqa: N802
        self[:] = [each for each in self if each in others]


class Jvm(Debugger):
    """A JVM whose threads are those of this process; both the debugger and py4j see its objects."""

    def __init__(self, without=()):
        self.declared = {of: {k: v for k, v in names.items() if k not in without} for of, names in METHODS.items()}
        self.stopped_at, self.set, self.names, self.of_py4j = [], {}, {}, set()
        self.active, self.seconds, self.properties = [], 10, {}
        self._objects, self._ids = {0: None}, itertools.count(1000)
        self._answers, self._stops = {}, queue.Queue()

    # What the debugger does.

    def next_stop(self):
        return self._stops.get()

    def methods(self, name):
        owner = PY4J if name.startswith("py4j") else [*METHODS].index(name) if name in self.declared else None
        found = self.declared.get(name, {})
        numbers = enumerate(found.items())
        return [DebuggedMethod(owner, number, *self._split(each, returns), 1) for number, (each, returns) in numbers]

    @staticmethod
    def _split(name, returns):
        at = name.find("(")
        return (
            (name[:at], name[at:]) if at >= 0 else (name, "()" + ("Ljava/lang/Object;" if returns == "L" else returns))
        )

    def stop_at(self, name, methods):
        found = [each.name for each in self.methods(name) if each.name in methods]
        self.stopped_at += [(name, each) for each in found]
        return len(found)

    def name_of(self, thread):
        return self.names.get(thread, "another")

    def prove(self, thread_name):
        assert thread_name in self.names.values()

    def classes_on_stack(self, thread):
        return frozenset({PY4J} if thread in self.of_py4j else {1, 2})

    def arguments(self, stop):
        this, arguments = self._answers[stop.thread].called
        return self._value(this), [self._value(each) for each in arguments]

    def string(self, text):
        return self._value(text)

    def call(self, thread, of, method, *arguments):
        assert thread in self._answers, "only a stopped thread can call"
        given = [each if letter == "I" else self._objects[each] for letter, each in arguments]
        if method.name == "getProperties":
            return self._value(self.properties)
        found = getattr(self._objects[of], method.name)(*given)
        return NOTHING if method.name == "add" else self._value(found)

    def end_with(self, stop, value):
        letter, of = value
        answer = {"V": lambda: None, "Z": lambda: bool(of), "L": lambda: self._objects[of] if of else None}[letter]()
        self._answers.pop(stop.thread).put(("held", answer))

    def resume(self, stop):
        self._answers.pop(stop.thread).put(("really", None))

    def _value(self, of):
        if isinstance(of, int):
            return "I", of
        if of is None:
            return NULL
        found = next((id for id, each in self._objects.items() if each is of), None)
        if found is None:
            found = next(self._ids)
            self._objects[found] = of
        return "L", found

    # What a program does.

    def calls(self, this, name, *arguments, owner=None):
        """Call a method at which threads stop, and return what the debugger lets it return, or ``really`` if it goes on."""
        of = next(each for each, methods in self.declared.items() if name in methods and owner in (None, each))
        assert (of, name) in self.stopped_at
        thread = threading.get_ident()
        self._objects[thread] = SimpleNamespace(getStackTrace=lambda: [FRAME])
        answer = self._answers[thread] = queue.Queue()
        answer.called = this, arguments
        self._stops.put(Stop(thread, next(each for each in self.methods(of) if each.name == name)))
        how, value = answer.get()
        if how == "the test ends":
            raise SystemExit
        return value if how == "held" else "really"

    def close(self):
        for answer in [*self._answers.values()]:
            answer.put(("the test ends", None))


FRAME = SimpleNamespace(getClassName=lambda: "acme.Main", getFileName=lambda: "Main.java", getLineNumber=lambda: 7)


@contextmanager
def _engine(monkeypatch, jvm):
    """A session in this JVM, which is debugged; ``session.read`` makes the frames of sources."""
    frames = ModuleType("pyspark.sql")
    frames.DataFrame = lambda frame, _: frame
    types, gateway = ModuleType("pyspark.sql.types"), ModuleType("py4j.java_gateway")
    types._parse_datatype_json_string = lambda text: f"parsed {text}"

    def main(name, given):
        jvm.of_py4j.add(threading.get_ident())
        jvm.programs[name](given)

    gateway.JavaClass = lambda name, _: SimpleNamespace(main=partial(main, name))
    for module in (frames, types, gateway):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(main_program, "session_class", lambda _: SimpleNamespace(setActiveSession=jvm.active.append))
    monkeypatch.setattr(jvm_methods, "check_main", lambda *_: None)
    monkeypatch.setattr(jvm_methods, "java_class", lambda _, name: name if name in jvm.declared else None)
    monkeypatch.setattr(main_program, "_engine", [jvm])
    thread = SimpleNamespace(setName=lambda name: jvm.names.__setitem__(threading.get_ident(), name))
    properties = SimpleNamespace(put=jvm.properties.__setitem__, remove=jvm.properties.pop)
    lang = SimpleNamespace(
        String="String",
        Thread=SimpleNamespace(currentThread=lambda: thread),
        System=SimpleNamespace(getProperties=lambda: properties),
    )
    util = SimpleNamespace(ArrayList=List, Collections=SimpleNamespace(emptyList=list))
    of_java = SimpleNamespace(equals=lambda other: other is of_java)
    of_py4j = SimpleNamespace(new_array=lambda kind, size: [kind] * size, _gateway_client=None)
    yield SimpleNamespace(
        _jsparkSession=of_java,
        _jvm=SimpleNamespace(java=SimpleNamespace(lang=lang, util=util)),
        sparkContext=SimpleNamespace(_gateway=of_py4j),
        conf=SimpleNamespace(set=jvm.set.__setitem__),
    )
    jvm.close()


@pytest.fixture
def jvm():
    return Jvm()


@pytest.fixture
def ran(monkeypatch, jvm):
    """Runs what stands for a main method; each source's DataFrame has its name, and the session of ``of``, by default the run's."""
    with _engine(monkeypatch, jvm) as session:

        def run(program, *arguments, read=None, named="acme.Main"):
            jvm.programs = {named: program}

            def frame(source: ProgramSource):
                of = SimpleNamespace(name=source.name, sparkSession=lambda: session._jsparkSession)
                return SimpleNamespace(_jdf=of)

            return main_program.run(named, arguments, session, read or frame)

        run.session = session
        yield run


def test_what_it_reads_and_starts_is_taken_down_and_nothing_starts(ran, jvm):
    def main(arguments):
        assert arguments == ["--day", "1"]
        spark = jvm.calls(Java(options=scala_map(**{"spark.sql.a": "b", "spark.executor.memory": "2g"})), "getOrCreate")
        assert spark is ran.session._jsparkSession
        orders = jvm.calls(reader(schema="a", path="/in/orders", multiline="true"), "load")
        clicks = jvm.calls(reader("JSON", name="clicked"), "load", "/in/clicks")
        sales = jvm.calls(reader(), "table", "lake.sales")
        changes = jvm.calls(reader(startingversion="1"), "changes", "lake.sales")
        assert [each.name for each in (orders, clicks, sales, changes)] == ["orders", "clicked", "sales", "sales_2"]
        query = jvm.calls(writer(orders, mode="Update", queryname="first"), "start", "/out")
        assert (query.name(), query.isActive(), query.awaitTermination()) == ("first", False, None)
        assert query.awaitTermination(5) is True
        jvm.calls(writer(changes, trigger="AvailableNowTrigger$"), "toTable", "out")
        assert jvm.calls(Java(), "awaitAnyTermination", 5) is True
        assert jvm.calls(Java(), "addListener", Java()) is None
        jvm.calls(Java(), "stop", owner=SQL + "SparkSession")

    run = ran(main, "--day", "1")
    assert [(each.name, each.format, each.schema, each.path, each.options) for each in run.sources] == [
        ("orders", "json", "parsed a", "/in/orders", {"multiline": "true"}),
        ("clicked", "json", None, "/in/clicks", {}),
        ("sales", "table", None, "lake.sales", {}),
        ("sales_2", "changes", None, "lake.sales", {"startingversion": "1"}),
    ]
    assert [(q.frame.name, q.name, q.output_mode, q.trigger, q.sink, q.at) for q in run.started] == [
        ("orders", "first", "update", "default", "parquet", "Main.java:7"),
        ("sales_2", None, "append", "availableNow", "table", "Main.java:7"),
    ]
    assert jvm.set == {"spark.sql.a": "b"}
    assert jvm.active == [ran.session._jsparkSession]
    assert jvm.properties == {}


def test_what_it_throws_ends_the_run_and_the_next_one_runs(ran):
    def throws(_):
        raise KeyError("no day")

    with pytest.raises(KeyError, match="no day"):
        ran(throws)
    assert ran(lambda _: None).started == []


def test_what_cannot_be_read_ends_the_run_and_the_thread_stands_still(ran, jvm):
    went_on = []

    def main(_):
        went_on.append(jvm.calls(reader(), "load", "/in"))

    def read(_):
        raise ValueError("no columns")

    with pytest.raises(ValueError, match="no columns"):
        ran(main, read=read)
    assert went_on == []


@pytest.mark.parametrize("method", ["exit", "halt"])
def test_it_may_exit_and_only_another_status_than_0_fails(ran, jvm, method):
    went_on = []

    def exits(arguments):
        jvm.calls(None, method, int(arguments[0]))
        went_on.append(method)

    assert ran(exits, "0").sources == []
    with pytest.raises(SystemExit) as ended:
        ran(exits, "3")
    assert ended.value.code == 3
    assert went_on == []


def test_a_program_without_end_is_noticed(ran, jvm):
    def waits(_):
        while True:
            jvm.calls(Java(), "awaitAnyTermination", 1)

    def waits_for_a_query(_):
        query = jvm.calls(writer(jvm.calls(reader(), "load", "/in")), "start")
        while True:
            with suppress(BaseException):
                query.awaitTermination(1)

    def starts(_):
        frame = jvm.calls(reader(), "load", "/in")
        while True:
            jvm.calls(writer(frame), "start")

    for main in (waits, waits_for_a_query, starts):
        with pytest.raises(WithoutEnd):
            ran(main)


def test_a_query_of_another_session_and_one_that_starts_in_another_way_are_refused(ran, jvm):
    def of_another(_):
        jvm.calls(writer(SimpleNamespace(sparkSession=lambda: SimpleNamespace(equals=lambda _: False))), "start")

    with pytest.raises(NotCallable, match=r"acme\.Main starts a query of another session"):
        ran(of_another)
    with pytest.raises(NotCallable, match=r"a query starts in a way that cannot be held, by startQuery"):
        ran(lambda _: jvm.calls(Java(), "startQuery"))


def test_threads_of_the_driver_go_on_and_those_of_a_program_that_has_ended_start_nothing(ran, jvm):
    seen = queue.Queue()

    def elsewhere(name, *, py4j):
        def call():
            if py4j:
                jvm.of_py4j.add(threading.get_ident())
            else:
                jvm.of_py4j.discard(threading.get_ident())
            with suppress(SystemExit):
                seen.put(jvm.calls(reader(), name, "/in"))

        threading.Thread(target=call, daemon=True).start()

    def main(_):
        elsewhere("load", py4j=True)
        assert seen.get(timeout=60) == "really"
        elsewhere("load", py4j=False)
        assert seen.get(timeout=60).name == "in"

    assert [each.name for each in ran(main).sources] == ["in"]
    elsewhere("start", py4j=False)
    elsewhere("load", py4j=False)
    assert seen.get(timeout=60) == "really", "a program that has ended still reads with Spark's own method"
    assert seen.empty(), "a query was started after the end"


@pytest.mark.parametrize("hangs", [False, True])
def test_the_jvm_ends_before_the_debugger_leaves(ran, monkeypatch, hangs):
    """Threads that stand still go on when it leaves. Where one of them keeps the JVM from its end, the JVM is killed."""
    main_program.end_jvm()
    ran(lambda _: None)
    did, asked = [], threading.Event()

    def wait(seconds=None):
        assert asked.wait(60)
        did.append("waited")
        if hangs and seconds is not None:
            raise subprocess.TimeoutExpired("java", seconds)

    lang = SimpleNamespace(System=SimpleNamespace(exit=lambda code: asked.set()))
    process = SimpleNamespace(wait=wait, kill=lambda: did.append("killed"))
    pyspark = ModuleType("pyspark")
    pyspark.SparkContext = SimpleNamespace(
        _gateway=SimpleNamespace(proc=process), _jvm=SimpleNamespace(java=SimpleNamespace(lang=lang))
    )
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    main_program.end_jvm()
    assert did == (["waited", "killed", "waited"] if hangs else ["waited"])


def test_methods_that_only_newer_versions_have_may_be_missing_and_no_others(monkeypatch):
    for without, says in (({"table", "toTable", "changes"}, None), ({"start"}, "DataStreamWriter has no start")):
        jvm = Jvm(without)
        jvm.programs = {"acme.Main": lambda _: None}
        with _engine(monkeypatch, jvm) as session:
            if says is None:
                assert main_program.run("acme.Main", (), session, None).sources == []
            else:
                with pytest.raises(DebuggerFailed, match=says):
                    main_program.run("acme.Main", (), session, None)


def test_without_a_debugger_and_through_connect_no_main_method_runs(monkeypatch):
    monkeypatch.setattr(main_program, "_engine", [])
    with pytest.raises(NotCallable, match=r"this Java has no debugger .* point JAVA_HOME at another Java"):
        main_program.run("acme.Main", (), SimpleNamespace(_jsparkSession=object()), None)
    with pytest.raises(NotCallable, match="through Connect no main method can be called"):
        main_program.run("acme.Main", (), SimpleNamespace(), None)


@pytest.mark.parametrize("library", ["lib/libjdwp.so", "lib/amd64/libjdwp.so", "bin/jdwp.dll"])
def test_a_jvm_is_debugged_only_where_it_is_wanted_and_its_java_can(tmp_path, monkeypatch, library):
    made = []
    monkeypatch.setattr(main_program, "_engine", made)
    monkeypatch.setattr(main_program, "Debugger", lambda: SimpleNamespace(option="-agentlib:jdwp=x"))

    def attached(**settings):
        main_program.attach(settings)
        return settings

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    key, options = main_program.DEBUGGER, main_program.JAVA_OPTIONS
    assert attached(**{key: "true", options: "-Xss4m"}) == {options: "-Xss4m"}, "this Java has no libjdwp"
    (tmp_path / library).parent.mkdir(parents=True)
    (tmp_path / library).touch()
    assert attached(**{options: "-Xss4m"}) == {options: "-Xss4m"}
    assert attached(**{key: "false"}) == {}
    assert made == []
    assert attached(**{key: "true", options: "-Xss4m"}) == {options: "-Xss4m -agentlib:jdwp=x"}
    assert attached(**{key: "true"}) == {options: "-agentlib:jdwp=x"}
    assert len(made) == 2
    monkeypatch.delenv("JAVA_HOME")
    assert attached(**{key: "true"}) == {}
