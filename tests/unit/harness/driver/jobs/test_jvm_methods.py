"""Choosing a method of a jar by what Java says of its parameters, without a JVM."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from harness.driver.jobs import jvm_methods
from harness.driver.jobs.own_code import AuthorCode, AuthorFailed


def java_class(name, *methods, module=None):
    """What stands for a ``java.lang.Class``; ``module``: the object of Scala that it is the class of."""
    fields = {"MODULE$": SimpleNamespace(get=lambda _: module)}
    made = SimpleNamespace(
        name=name,
        getName=lambda: name,
        getSimpleName=lambda: name.rpartition(".")[2],
        getMethods=lambda: methods,
        getField=fields.__getitem__,
    )
    made.isAssignableFrom = lambda other: other is made
    return made


DATASET, SESSION, TEXT = (
    java_class(name) for name in ("org.apache.spark.sql.Dataset", "a.SparkSession", "java.lang.String")
)


def method(name, *parameters, returns=DATASET, static=True, names=()):
    def parameter(number, type):
        named = number < len(names)
        return SimpleNamespace(
            getType=lambda: type,
            isNamePresent=lambda: named,
            getName=lambda: names[number] if named else f"arg{number}",
        )

    found = [parameter(number, type) for number, type in enumerate(parameters)]
    return SimpleNamespace(
        getName=lambda: name, getReturnType=lambda: returns, getModifiers=lambda: static, getParameters=lambda: found
    )


class Thrown(Exception):
    """Stands for a ``Py4JJavaError``. ``frames``: classes with methods."""

    def __init__(self, name, said="", frames=()):
        super().__init__(name)
        trace = [
            SimpleNamespace(getClassName=lambda of=of: of, getFileName=lambda: "Jobs.java", getLineNumber=lambda: 12)
            for of in frames
        ]
        self.java_exception = SimpleNamespace(
            getClass=lambda: java_class(name), toString=lambda: f"{name}: {said}", getStackTrace=lambda: trace
        )


@pytest.fixture
def called(monkeypatch):
    """Calls a method of these classes with frames; returns what it got. A class may be an exception, which is raised."""

    def run(named, classes, *streams, does=lambda *given: given):
        protocol, gateway, sql = ModuleType("py4j.protocol"), ModuleType("py4j.java_gateway"), ModuleType("pyspark.sql")
        protocol.Py4JJavaError = Thrown

        def answer(*given):
            return SimpleNamespace(toDF=lambda: does(*given))

        gateway.JavaClass = lambda name, client: SimpleNamespace(**dict.fromkeys(("f", "g"), answer))
        sql.DataFrame = lambda made, session: made
        for module in (protocol, gateway, sql):
            monkeypatch.setitem(sys.modules, module.__name__, module)

        def for_name(name, initialize, loader):
            assert (initialize, loader) == (True, "loader")
            found = {DATASET.name: DATASET, **classes}.get(name, Thrown("java.lang.ClassNotFoundException"))
            if isinstance(found, Exception):
                raise found
            return found

        thread = SimpleNamespace(getContextClassLoader=lambda: "loader")
        java = SimpleNamespace(
            lang=SimpleNamespace(
                Class=SimpleNamespace(forName=for_name),
                Thread=SimpleNamespace(currentThread=lambda: thread),
                reflect=SimpleNamespace(Modifier=SimpleNamespace(isStatic=lambda modifiers: modifiers)),
            )
        )
        scala = SimpleNamespace(util=SimpleNamespace(Properties=SimpleNamespace(versionNumberString=lambda: "2.12.18")))
        inner = SimpleNamespace(getClass=lambda: SESSION)
        session = SimpleNamespace(
            _jsparkSession=inner,
            _jvm=SimpleNamespace(java=java, scala=scala),
            version="3.5.9",
            sparkContext=SimpleNamespace(_gateway=SimpleNamespace(_gateway_client=None)),
        )
        frames = {name: SimpleNamespace(_jdf=SimpleNamespace(getClass=lambda: DATASET, name=name)) for name in streams}
        got = AuthorCode([]).method(named, session, frames)
        return tuple("session" if each is inner else each.name for each in got)

    return run


def test_frames_go_to_the_parameters_of_their_names_or_in_their_order(called):
    unnamed = java_class("acme.Jobs", method("f", SESSION, DATASET, DATASET), method("g", DATASET))
    assert called("acme.Jobs.f", {"acme.Jobs": unnamed}, "a", "b") == ("session", "a", "b")
    assert called("acme.Jobs.g", {"acme.Jobs": unnamed}, "a") == ("a",)
    named = java_class("acme.Jobs", method("f", DATASET, SESSION, DATASET, names=("b", "spark", "a")))
    assert called("acme.Jobs.f", {"acme.Jobs": named}, "a", "b") == ("b", "session", "a")
    assert called("acme.Jobs.f", {"acme.Jobs": named}, "a", "c") == ("a", "session", "c")


def test_an_object_of_scala_has_methods_of_its_own(called):
    made = SimpleNamespace(toDF=lambda: ())
    module = SimpleNamespace(f=lambda *given: made)
    classes = {
        "acme.Jobs": java_class("acme.Jobs"),
        "acme.Jobs$": java_class("acme.Jobs$", method("f", DATASET, static=False), module=module),
    }
    assert called("acme.Jobs.f", classes, "a") == ()


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("acme.Gone.f", "NotCallable: there is no class acme.Gone in the jars"),
        ("acme.Jobs.h", "NotCallable: acme.Jobs has no static method h that is public and returns a Dataset; it has "
         "f(SparkSession, DataFrame orders); g(DataFrame); g(SparkSession, DataFrame); two(String, DataFrame)"),
        ("acme.Jobs.g", "NotCallable: acme.Jobs.g is ambiguous, 1 DataFrame given: a: g(DataFrame); g(SparkSession, DataFrame)"),
        ("acme.Jobs.two", "NotCallable: acme.Jobs.two is two(String, DataFrame); 1 DataFrame given: a"),
        ("acme.New.f", "UnsupportedClassVersionError: the jar is compiled for Java 25, and this engine has Java 17: compile "
         "it with --release 17"),
        ("acme.Other.f", "java.lang.NoClassDefFoundError: scala/collection/IterableOnce; is the jar built for Scala 2.12, which Spark "
         "3.5.9 has? One for each: --jar 2.12=a.jar --jar 2.13=b.jar"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_in_one_line(called, named, says):
    classes = {
        "acme.Jobs": java_class(
            "acme.Jobs",
            method("f", SESSION, DATASET, names=("spark", "orders")),
            method("g", DATASET),
            method("g", SESSION, DATASET),
            method("two", TEXT, DATASET),
            method("text", DATASET, returns=TEXT),
            method("own", DATASET, static=False),
        ),
        "acme.New": Thrown(
            "java.lang.UnsupportedClassVersionError",
            "acme/New has been compiled by a more recent version of the Java Runtime (class file version 69.0), this version of the "
            "Java Runtime only recognizes class file versions up to 61.0",
        ),
        "acme.Other": Thrown("java.lang.NoClassDefFoundError", "scala/collection/IterableOnce"),
    }
    with pytest.raises(AuthorFailed) as failed:
        called(named, classes, "a")
    assert failed.value.mistake.raised == says
    assert (failed.value.mistake.at, failed.value.mistake.during) == (None, "while building the query")


def test_what_the_code_throws_is_its_own_and_what_spark_refuses_is_sparks(called):
    classes = {"acme.Jobs": java_class("acme.Jobs", method("f", DATASET))}

    def throwing(*frames):
        def throw(*_):
            raise Thrown("java.lang.NullPointerException", "x", frames)

        return throw

    with pytest.raises(AuthorFailed) as failed:
        called("acme.Jobs.f", classes, "a", does=throwing("java.util.Objects", "acme.Jobs", "org.apache.spark.A"))
    assert failed.value.mistake.raised == "java.lang.NullPointerException: x"
    assert failed.value.mistake.at == "Jobs.java:12"
    with pytest.raises(Thrown):
        called("acme.Jobs.f", classes, "a", does=throwing("scala.Option", "org.apache.spark.sql.Dataset", "acme.Jobs"))


def test_a_main_method_is_static_and_takes_texts(monkeypatch):
    def method(name, *types, static=True):
        named = [java_class(type) for type in types]
        return SimpleNamespace(getName=lambda: name, getParameterTypes=lambda: named, getModifiers=lambda: static)

    texts = "[Ljava.lang.String;"
    modifier = SimpleNamespace(isStatic=lambda modifiers: modifiers)
    java = SimpleNamespace(lang=SimpleNamespace(reflect=SimpleNamespace(Modifier=modifier)))
    session = SimpleNamespace(_jvm=SimpleNamespace(java=java))
    for methods, fits in (
        ([method("main", "int"), method("main", texts)], True),
        ([method("main", texts, static=False)], False),
        ([method("main"), method("Main", texts), method("main", texts, "int")], False),
        (None, False),
    ):
        of = None if methods is None else java_class("acme.Main", *methods)
        monkeypatch.setattr(jvm_methods, "java_class", lambda _, name, of=of: of)
        if fits:
            jvm_methods.check_main("acme.Main", session)
        else:
            with pytest.raises(jvm_methods.NotCallable, match=r"acme\.Main"):
                jvm_methods.check_main("acme.Main", session)


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (
            "NoSuchMethodError",
            "'org.apache.spark.sql.streaming.DataStreamWriter org.apache.spark.sql.streaming.DataStreamWriter.option(java.lang.String, "
            "java.lang.String)'",
            "3.5.9 does not have this. Compile it for both, one jar for each Scala: --jar 2.12=a.jar --jar 2.13=b.jar, or for the older",
        ),
        ("NoClassDefFoundError", "org/apache/spark/sql/New", "3.5.9 does not have this without a --package, perhaps. Compile it"),
        ("AbstractMethodError", "Receiver class acme.F does not define the method of interface org.apache.spark.sql.A", "Compile it"),
        ("IncompatibleClassChangeError", "Found interface org.apache.spark.sql.A, but class was expected", "have this. Compile it"),
    ],
)  # fmt: skip
def test_a_jar_compiled_for_another_spark_is_called_so_in_one_line(called, error, said, hint):
    def throw(*_):
        # Spark itself may be the one that calls what the class lacks.
        raise Thrown("java.lang." + error, said, ["org.apache.spark.sql.Dataset", "acme.Jobs"])

    with pytest.raises(AuthorFailed) as failed:
        called("acme.Jobs.f", {"acme.Jobs": java_class("acme.Jobs", method("f", DATASET))}, "a", does=throw)
    assert failed.value.mistake.raised.startswith(f"java.lang.{error}: {said}; the jar is compiled for another Spark: ")
    assert hint in failed.value.mistake.raised
    assert "\n" not in failed.value.mistake.raised
    assert failed.value.mistake.at == "Jobs.java:12"


def test_a_class_of_the_authors_own_that_is_not_there_is_no_matter_of_spark(called):
    def throw(*_):
        raise Thrown("java.lang.NoClassDefFoundError", "acme/Other", ["acme.Jobs"])

    with pytest.raises(AuthorFailed) as failed:
        called("acme.Jobs.f", {"acme.Jobs": java_class("acme.Jobs", method("f", DATASET))}, "a", does=throw)
    assert failed.value.mistake.raised == "java.lang.NoClassDefFoundError: acme/Other"


def test_through_connect_no_jar_is_called():
    with pytest.raises(jvm_methods.NotCallable, match="through Connect no method of a jar can be called"):
        jvm_methods.call("acme.Jobs.f", SimpleNamespace(), {})


TASK = """Job aborted due to stage failure: Lost task 0.0: org.apache.spark.SparkException: [FAILED_EXECUTE_UDF] of Sums$$Lambda
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.failedExecuteUserDefinedFunctionError(QueryExecutionErrors.scala:195)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.lang.StringIndexOutOfBoundsException: begin 9, end 3
\tat java.base/java.lang.String.substring(String.java:2709)
\tat acme.Sums.lambda$fails$0(Sums.java:21)
\tat org.apache.spark.sql.functions$.$anonfun$udf$1(functions.scala:1)

Driver stacktrace:"""


def test_what_code_throws_in_a_task_is_found_in_the_text_of_the_error():
    said = "java.lang.StringIndexOutOfBoundsException: begin 9, end 3"
    assert jvm_methods.thrown_in_text(TASK) == (said, "Sums.java:21")
    assert jvm_methods.thrown_in_text(TASK.replace("acme.Sums", "org.apache.spark.Own")) is None
    assert jvm_methods.thrown_in_text("java.lang.Error: without frames") is None
    assert AuthorCode([]).mistake_in_text(TASK) is None
