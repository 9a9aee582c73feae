"""Calls a static method of a class in the author's jars, or a method of a Scala object, that makes a DataFrame of DataFrames."""

from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional

from ..session import NO_STARTS
from .query_starts import STARTS_ITSELF

_DATASET = "org.apache.spark.sql.Dataset"
_OF_LANGUAGES = re.compile(r"(java|javax|jdk|sun|scala)\.")
_OF_SPARK = re.compile(r"(org\.apache\.spark|py4j)\.")
_EXCEPTION = re.compile(r"((?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b[^\n]*)\n((?:\s+at [^\n]+(?:\n|$))+)")
"""An exception in a text, with the frames below it."""
_FRAME = re.compile(r"\s+at (?:[\w.-]*/+)*([\w.$]+)\.[\w$<>]+\(([^)]*)\)")
_LINKAGE = (
    "NoClassDefFoundError",
    "NoSuchMethodError",
    "ClassNotFoundException",
    "NoSuchFieldError",
    "AbstractMethodError",
    "IncompatibleClassChangeError",
)
_CLASS_OF_SPARK = re.compile(r"\borg[./]apache[./]spark\b")
_CLASS_FILE = re.compile(r"class file version (\d+)\.\d+\).* up to (\d+)\.")
_FIRST_CLASS_FILE = 44
"""The version of a class file is that of Java and this: Java 17 writes 61."""


class NotCallable(Exception):
    """No method fits; the message says which there are."""


class Thrown(NamedTuple):
    """What code of the author's threw."""

    what: str
    at: Optional[str]
    """``Jobs.java:12``"""


class _Method(NamedTuple):
    owner: Any
    """The class or the object, to call it on."""
    method: Any
    arguments: List[str]
    """``session``, ``frame``, or the name of the type if it is another."""
    names: List[str]
    """Of the parameters with DataFrames; empty if the class file does not tell."""

    @property
    def frames(self) -> int:
        return self.arguments.count("frame")

    def __str__(self) -> str:
        names = iter(self.names)
        kinds = {"session": "SparkSession", "frame": "DataFrame"}
        shown = [
            " ".join([kinds.get(kind, kind), *([next(names, "")] if kind == "frame" else [])])
            for kind in self.arguments
        ]
        return "{}({})".format(self.method.getName(), ", ".join(text.strip() for text in shown))


def call(named: str, session: Any, frames: Dict[str, Any]) -> Any:
    """The DataFrame that ``package.Class.method`` makes of these, by stream. It gets the session if it has a parameter for it.

    The frames go to the parameters of their names, if the class file tells those of all, else each to that in its place. Raises
    ``NotCallable`` if there is no such method, or it returned null.
    """
    if getattr(session, "_jsparkSession", None) is None:
        raise NotCallable("through Connect no method of a jar can be called")
    chosen = _chosen(named, session, frames)
    order = chosen.names if sorted(chosen.names) == sorted(frames) else list(frames)
    left = iter([frames[name] for name in order])
    arguments = [session._jsparkSession if kind == "session" else next(left)._jdf for kind in chosen.arguments]
    made = getattr(chosen.owner, chosen.method.getName())(*arguments)
    if made is None:
        raise NotCallable("{} returned null".format(named))
    from pyspark.sql import DataFrame

    return DataFrame(made.toDF(), getattr(session, "_wrapped", session))  # up to 3.2 it wants the SQLContext


def _chosen(named: str, session: Any, frames: Dict[str, Any]) -> _Method:
    holder, _, name = named.rpartition(".")
    methods = _methods(holder, session, next(iter(frames.values()))._jdf)
    same = [method for method in methods if method.method.getName() == name]
    fitting = [
        method for method in same if method.frames == len(frames) and {*method.arguments} <= {"session", "frame"}
    ]
    if len(fitting) == 1:
        return fitting[0]
    given = "{} DataFrame{} given: {}".format(len(frames), "" if len(frames) == 1 else "s", ", ".join(frames))
    if fitting:
        raise NotCallable("{} is ambiguous, {}: {}".format(named, given, "; ".join(map(str, fitting))))
    if same:
        raise NotCallable("{} is {}; {}".format(named, " or ".join(map(str, same)), given))
    has = "; ".join(sorted(map(str, methods))) or "none"
    raise NotCallable(
        "{} has no static method {} that is public and returns a Dataset; it has {}".format(holder, name, has)
    )


def _methods(holder: str, session: Any, frame: Any) -> List[_Method]:
    """The public static methods of a class, or those of a Scala object, that return a ``Dataset``."""
    from py4j.java_gateway import JavaClass

    jvm = session._jvm
    dataset, declaring = java_class(jvm, _DATASET), java_class(jvm, holder)
    if declaring is None:
        raise NotCallable("there is no class {} in the jars".format(holder))

    def method(owner: Any, reflected: Any) -> _Method:
        arguments, names = [], []
        for parameter in reflected.getParameters():
            type = parameter.getType()
            if type.isAssignableFrom(frame.getClass()):
                arguments.append("frame")
                names += [str(parameter.getName())] if parameter.isNamePresent() else []
            elif type.isAssignableFrom(session._jsparkSession.getClass()):
                arguments.append("session")
            else:
                arguments.append(str(type.getSimpleName()))
        return _Method(owner, reflected, arguments, names)

    def of_class(declaring: Any, owner: Any, static: bool) -> List[_Method]:
        is_static = jvm.java.lang.reflect.Modifier.isStatic
        return [
            method(owner, reflected)
            for reflected in declaring.getMethods()
            if dataset.isAssignableFrom(reflected.getReturnType()) and is_static(reflected.getModifiers()) == static
        ]

    found = of_class(declaring, JavaClass(holder, session.sparkContext._gateway._gateway_client), True)
    of_object = None if found else java_class(jvm, holder + "$")
    if of_object is None:
        return found
    return of_class(of_object, of_object.getField("MODULE$").get(None), False)


def check_main(named: str, session: Any) -> None:
    """Find the main method of a class. Raises ``NotCallable`` if there is none."""
    declaring = java_class(session._jvm, named)
    if declaring is None:
        raise NotCallable("there is no class {} in the jars".format(named))
    is_static = session._jvm.java.lang.reflect.Modifier.isStatic
    for method in declaring.getMethods():
        types = [type.getName() for type in method.getParameterTypes()]
        if method.getName() == "main" and types == ["[Ljava.lang.String;"] and is_static(method.getModifiers()):
            return
    raise NotCallable("{} has no method public static void main(String[])".format(named))


def java_class(jvm: Any, name: str) -> Any:
    """A class; None if there is none."""
    from py4j.protocol import Py4JJavaError

    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        return jvm.java.lang.Class.forName(name, True, loader)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() == "java.lang.ClassNotFoundException":
            return None
        raise


def thrown(error: BaseException, session: Any) -> Optional[Thrown]:
    """What the author's code threw; None if Spark did."""
    if isinstance(error, NotCallable):
        return Thrown("NotCallable: {}".format(error), None)
    # Since 3.4 an exception that PySpark has made of one of Java's keeps it.
    exception = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if exception is None:
        return None
    frames = list(exception.getStackTrace())
    said = str(exception.toString())
    if NO_STARTS in said:
        return Thrown("NotCallable: the method " + STARTS_ITSELF.format(""), place(frames))
    linkage = exception.getClass().getName().endswith(_LINKAGE)
    newer = _CLASS_FILE.search(said)
    if newer:
        compiled, runs = (int(number) - _FIRST_CLASS_FILE for number in newer.groups())
        return Thrown(
            "UnsupportedClassVersionError: the jar is compiled for Java {}, and this engine has Java {}: compile it with --release "
            "{}".format(compiled, runs, runs),
            None,
        )
    if linkage and "scala" in said:
        version = session._jvm.scala.util.Properties.versionNumberString().rpartition(".")[0]
        hint = "; is the jar built for Scala {}, which Spark {} has? One for each: --jar 2.12=a.jar --jar 2.13=b.jar"
        return Thrown(said + hint.format(version, session.version), place(frames))
    if linkage and _CLASS_OF_SPARK.search(said):
        hint = "; the jar is compiled for another Spark: {} does not have this{}. Compile it for both, one jar for each Scala: --jar "
        hint += "2.12=a.jar --jar 2.13=b.jar, or for the older Spark if both have one Scala"
        no_class = exception.getClass().getName().endswith(("NoClassDefFoundError", "ClassNotFoundException"))
        package = " without a --package, perhaps" if no_class else ""
        return Thrown(said + hint.format(session.version, package), place(frames))
    # A method of Java that the author calls fails by the author's fault; one of Spark's refuses something.
    called = next((frame.getClassName() for frame in frames if not _OF_LANGUAGES.match(frame.getClassName())), "")
    if not linkage and _OF_SPARK.match(called):
        return None
    return Thrown(said, place(frames))


def thrown_in_text(message: str) -> Optional[Thrown]:
    """What the author's code threw in a task, by the text of Spark's error; None if Spark's own code did."""
    for what, trace in _EXCEPTION.findall(message):
        frames = [(name, line) for name, line in _FRAME.findall(trace) if not _OF_LANGUAGES.match(name)]
        if frames and not _OF_SPARK.match(frames[0][0]):
            return Thrown(what.strip(), frames[0][1])
    return None


def place(frames: List[Any]) -> Optional[str]:
    """The author's line that was running."""
    for frame in frames:
        if not _OF_LANGUAGES.match(frame.getClassName()) and not _OF_SPARK.match(frame.getClassName()):
            return "{}:{}".format(frame.getFileName(), frame.getLineNumber())
    return None
