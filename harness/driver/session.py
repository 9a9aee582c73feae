"""The first Spark session of a process with a JVM, the settings of every session, and what makes py4j and the JVM start fast.

A JVM searches its jars in order until it finds a class. Spark's order is that of its directory's entries, which no file system promises.
Each question of py4j is a round trip, and for a name that is not a class the JVM searches all jars.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import threading
from contextlib import suppress
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from .peer import refuse_others

CLASS_PATH = "spark.driver.extraClassPath"
FIRST_JARS = "spark.conformance.firstJars"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
"""The class that reads and writes the logs of queries and of file sinks; a session may set it."""
NO_STARTS = "conformance.NoQueryStarts"
"""The name of a class that does not exist. Spark makes the manager of a query's files before it writes any of them; only a table that
``toTable`` makes comes first. Every session begins with it, and those of cases lose it."""


def order_class_path(settings: Dict[str, str], home: str) -> None:
    """Let the class path begin with the jars that the settings name, without versions and in their order; all others follow.

    ``settings``: of the JVM; a beginning of the class path that they name stays as it is. ``home``: the directory of this Spark.
    """
    names = settings.pop(FIRST_JARS, "").split()
    if not names or CLASS_PATH in settings:
        return
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    with suppress(OSError), open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8") as defaults:
        if CLASS_PATH in defaults.read():  # a vendor's, which these would replace
            return
    jars = os.path.join(home, "jars")
    present = sorted(os.listdir(jars)) if os.path.isdir(jars) else []
    first: List[str] = []
    for name in names:
        # spark-sql: spark-sql_2.12-3.5.9.jar
        ours = re.compile(re.escape(name) + r"(_2\.\d+)?-\d.*\.jar")
        first += [os.path.join(jars, jar) for jar in present if ours.fullmatch(jar)]
    if first:
        settings[CLASS_PATH] = os.pathsep.join(first)


def remember() -> None:
    """From now on, a package, a class or a static method that py4j has found is not looked up again.

    A JVM does not lose a class, and values of fields are not remembered. A simple name may be unknown, and so pass for a package, until
    its class is imported: of those, only names of packages are remembered.
    """
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

    for holder in (JVMView, JavaPackage, JavaClass):
        holder.__getattr__ = _remembering(holder.__getattr__, (JavaPackage, JavaClass, JavaMember), JavaPackage)


def _remembering(look_up: Callable[[Any, str], Any], kinds: Any, package: type) -> Callable[[Any, str], Any]:
    @functools.wraps(look_up)
    def attribute(self: Any, name: str) -> Any:
        value = look_up(self, name)
        if isinstance(value, kinds) and (not isinstance(value, package) or name.islower()):
            # Python asks `__getattr__` only for what is not here.
            self.__dict__[name] = value
        return value

    return attribute


class ConnectionsOfThread(threading.local):
    """The idle connections of each Python thread to the JVM, where a connection is a thread.

    It stands for the ``deque`` of py4j's ``GatewayClient``, which gives any connection to any thread. A thread has a second connection
    if an object is collected while it uses the first.
    """

    def __init__(self) -> None:
        self._idle: List[Any] = []

    def pop(self) -> Any:
        """The connection that came back last. Raises ``IndexError`` if there is none; py4j then makes one."""
        return self._idle.pop()

    def append(self, connection: Any) -> None:
        self._idle.append(connection)

    def __len__(self) -> int:
        return len(self._idle)


def pin_threads(gateway: Any) -> None:
    """Give each Python thread connections of its own, unless the gateway does.

    The active session belongs to a JVM thread. pyspark 3.0 and newer pin threads if ``PYSPARK_PIN_THREAD`` is set; 2.4 cannot.
    """
    from py4j.clientserver import ClientServer

    if not isinstance(gateway, ClientServer):
        gateway._gateway_client.deque = ConnectionsOfThread()


_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
"""The masters for which Spark makes a secret of its own, without which nobody talks to the ports of its JVM. Source: SecurityManager."""
_OF_EACH_START = re.compile(
    r"spark\.((app|repl|submit|conformance)\..*|(driver|executor)\.(id|port|extra(JavaOptions|ClassPath))"
    r"|sql\.artifact\.isolation\.(enabled|alwaysApplyClassloader)|authenticate|master|rdd\.compress"
    r"|serializer\.objectStreamReset|hadoop\.fs\.s3a\.vectored\.read\..*|ui\.showConsoleProgress)$"
)
"""What Spark, its Connect server and pyspark set whenever they start."""
_SECRET = re.compile("(?i)secret|password|token|(access|account)[.]?key|credential|://[^/\\s]*@")
_ONE_FILE_PER_PARTITION = str(1 << 30)

SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    # Opening a file costs as much as a partition may hold, so each file is a partition of its own.
    "spark.sql.files.maxPartitionBytes": _ONE_FILE_PER_PARTITION,
    "spark.sql.files.openCostInBytes": _ONE_FILE_PER_PARTITION,
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
"""Settings of every session; a session can override them."""
_FIRST_WHOSE_QUERIES_KEEP_THEM = 3
"""The first major version of Spark whose queries have the settings of their session, whatever the context says (SPARK-27253)."""


def start(work: str, conf: dict[str, str], hidden: dict[str, str]) -> Any:
    """Start Spark, in local mode by default. The parameters are those of ``classic.Classic``."""
    from pyspark.java_gateway import ensure_callback_server_started
    from pyspark.sql import SparkSession

    shown = {**_static_settings(work, {**conf, **hidden}.get("spark.master", "local[1]")), **conf}
    order_class_path(shown, os.environ.get("SPARK_HOME", ""))
    if hidden:
        _start_jvm(shown)
    builder = SparkSession.builder.master("local[1]").appName("watermark-conformance")
    for key, value in {**shown, **hidden}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    builder._options.clear()  # up to 3.3 pyspark would give them to each session for which code asks it
    spark.sparkContext.setLogLevel("ERROR")
    pin_threads(spark.sparkContext._gateway)
    if spark.conf.get("spark.conformance.writeChecksums", "true") == "false":
        _write_no_checksums(spark)
    if spark.conf.get("spark.conformance.hadoopDefaults", "true") == "false":
        _clear_hadoop_defaults(spark)
    # Nor do queries start in a JVM of a process that the author's code starts: by subprocess, or multiprocessing with `spawn`.
    with open(os.path.join(work, "spark-defaults.conf"), "w", encoding="utf-8") as settings:
        settings.write("{} {}\n".format(MANAGER, NO_STARTS))
    os.environ["SPARK_CONF_DIR"] = work
    # Here, because starting it is not thread-safe; every query calls `foreachBatch` through it.
    ensure_callback_server_started(spark.sparkContext._gateway)
    refuse_others(spark.sparkContext._gateway._callback_server)
    return spark


def settings_of_each(spark: Any) -> dict[str, str]:
    """The settings to make in each new session, because the context does not have them any more.

    Before 3.0 a query runs with the settings of the context, even if its session has overridden them: this takes them out of the context.
    """
    if int(spark.version.split(".")[0]) >= _FIRST_WHOSE_QUERIES_KEEP_THEM:
        return {}
    context = spark.sparkContext._jsc.sc().conf()
    taken = {key: context.get(key) for key in SESSION_SETTINGS}
    for key in (*taken, MANAGER):
        context.remove(key)
    return taken


def own_settings(
    settings: Iterable[Tuple[str, str]], given: Dict[str, str], conf: Any, default_of: Callable[[str], Optional[str]]
) -> Dict[str, List[str]]:
    """The settings that neither the suite nor its user has ``given``, and that differ from Spark's defaults: a vendor's, or those of a
    ``spark-defaults.conf``; without secrets. No session changes those that are ``fixed``. ``conf``: of a session that has no other use."""
    own: Dict[str, List[str]] = {"settings": [], "fixed": []}
    known = {**_static_settings("", ""), **given}
    for key, value in sorted(settings):
        if key in known or _OF_EACH_START.match(key) or _SECRET.search(key + value):
            continue
        kind = "settings" if key.startswith("spark.sql.") else "fixed"
        try:
            conf.unset(key)
        except Exception:  # AnalysisException of the JVM or the server
            kind = "fixed"
        default = default_of(key)
        if value != (default or ""):
            own[kind].append("{}={}".format(key, value) + (" (by default {})".format(default) if default else ""))
    return own


def own_jars(package: str, home: str, class_path: str) -> List[str]:
    """The jars on a class path that did not come with pyspark, or have another size than those that did: a vendor's, a patch.

    ``package``: the folder of pyspark. One that no installer has installed says nothing of the jars in its ``home``."""
    shipped: Dict[str, str] = {}
    for record in glob.glob(os.path.join(os.path.dirname(package), "pyspark-*.dist-info", "RECORD")):
        with open(record, encoding="utf-8") as lines:
            shipped.update(re.findall(r"/([^/]+\.jar),.*,(\d+)$", lines.read(), re.MULTILINE))

    def is_own(path: str) -> bool:
        as_it_came = shipped.get(os.path.basename(path)) == str(os.path.getsize(path)) or not shipped
        return os.path.dirname(path) != os.path.join(home, "jars") or not as_it_came

    jars = (path for path in set(class_path.split(os.pathsep)) if path.endswith(".jar") and os.path.isfile(path))
    return sorted("jar " + os.path.basename(path) for path in jars if is_own(path))


def session_class(spark: Any) -> Any:
    """The JVM class that sets the active session. Look it up once: py4j searches all jars for each part of the name."""
    from py4j.java_gateway import JavaClass

    jvm = spark.sparkContext._jvm
    companion = jvm.org.apache.spark.sql.classic.SparkSession  # 4.0 and newer; before, `classic` is an unknown package
    return companion if isinstance(companion, JavaClass) else jvm.org.apache.spark.sql.SparkSession


def _start_jvm(shown: dict[str, str]) -> None:
    """Start the JVM with these settings only: what it starts with are its arguments, which every user of the machine can read."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf(False).setAll([*{"spark.master": "local[1]", **shown}.items()])
    SparkContext._ensure_initialized(conf=conf)


def _write_no_checksums(spark: Any) -> None:
    """Hadoop has no setting for this, only a method. The process has one file system object."""
    jvm = spark.sparkContext._jvm
    local = jvm.org.apache.hadoop.fs.FileSystem.get(
        jvm.java.net.URI("file:///"), spark.sparkContext._jsc.hadoopConfiguration()
    )
    local.setWriteChecksum(False)


def _clear_hadoop_defaults(spark: Any) -> None:
    """Keep only the Hadoop settings that were set explicitly; the code that reads a setting has the same defaults."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.clear()
    prefix = "spark.hadoop."
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(prefix):
            settings.set(key[len(prefix) :], value)


def _static_settings(work: str, master: str) -> dict[str, str]:
    return {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": work + "/scratch",
        "spark.sql.warehouse.dir": work + "/warehouse",
        "spark.sql.catalogImplementation": "in-memory",
        MANAGER: NO_STARTS,
        **({"spark.authenticate": "true"} if _LOCAL.fullmatch(master) else {}),
        **SESSION_SETTINGS,
    }
