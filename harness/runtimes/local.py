"""The ``local`` runtime: each target in its own environment on this machine, without containers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path

from conformance.core.case import Case
from conformance.core.wording import secrets_of, without_secrets
from harness.driver.errors import FailureReason
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, Engine, EngineLocation, EngineNeeds, EngineNotStarted
from harness.engine.transport import SubprocessTransport
from harness.environments.class_archive import ArchiveRecording, ClassArchive, option
from harness.environments.environment import Environment
from harness.environments.provision import prepare, prepared
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.cluster import Cluster, StorageUrl
from harness.runtimes.kafka_broker import Kafka, KafkaAccess
from harness.runtimes.line_packages import LISTS, NATIVE, Accelerator, package_access, package_of
from harness.runtimes.own_code import (
    JARS,
    LOCAL_JARS,
    Jar,
    JarPackage,
    OwnCode,
    jar_settings,
    local_jar_settings,
    with_requirements,
    worker_settings,
)
from harness.targets.targets import Target, tuning

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CONF_OF_JARS = {JARS, LOCAL_JARS, "spark.driver.extraClassPath"}
"""Settings with which the user adds jars."""
_DEBUGGER = {"spark.conformance.debugger": "true"}
"""The driver debugs its JVM: only so can it hold a main method of the user's jars."""
_MANY_TASKS = {"spark.master": "local[16]"}
"""All tasks of a real-time query run at once, those of the source and those behind the shuffle."""
_SECONDS_TO_WRITE_AN_ARCHIVE = 120.0
"""A quiet machine takes a few seconds."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """What the user may choose for engines on this machine."""

    plain: bool = False
    """Whether to keep Spark's defaults instead of the settings of ``tuning.yaml``."""
    own_code: OwnCode | None = None
    """The modules that ``call`` may name; None if the user did not allow code."""
    requirements: Sequence[str] = ()
    packages: Sequence[JarPackage] = ()
    jars: Sequence[Jar] = ()
    accelerator: Accelerator | None = None
    cluster: Cluster | None = None
    """Provides executors; None runs everything in the engine's own process."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of each engine; they override the suite's own."""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LocalRuntime(EngineSettings):
    """Starts engines as child processes."""

    root: Path
    """Holds the working directories of engines; the caller removes it."""
    _: KW_ONLY
    storage: StorageUrl | None = None
    """Holds the files of cases; None for ``root``."""
    kafka: Kafka = field(default_factory=Kafka)
    """The broker for topics; closed with the runtime."""

    name = "local"

    def unsupported(self, case: Case, target: Target) -> str | None:
        elsewhere = self.cluster is not None and not self.cluster.on_this_machine
        if case.in_real_time and (self.cluster is not None or self.storage is not None):
            return "rows for a real-time query, and what it emits, lie on this machine; run it without --master and --storage"
        if case.topics and elsewhere and not self.kafka.is_the_users:
            return "the cluster does not reach a Kafka broker on this machine: pass --kafka host:port of one that it reaches"
        lacking = (package_of(format).lacking(target.version) for format in case.table_formats)
        return next(filter(None, lacking), None)

    def fingerprint(self, target: Target) -> str | None:
        # Users change an installed Spark in place; the build of a cluster, a storage or a jar, and the use of a variable, is unknown.
        unknown = target.installed is not None or bool(self.cluster or self.storage or self.variables or self.jars)
        environment = None if unknown else prepared(with_requirements(target, self.requirements))
        if environment is None or environment.root is None:
            return None
        build = [environment.root.name, environment.python_version, environment.java_version]
        with_it = [self.accelerator.release(target.version)] if self.accelerator else []
        return json.dumps([self.name, *build, *with_it, {**self._tuning(target), **self.conf, **self._jars(target)}])

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:
        if self.cluster is not None:
            self.cluster.check()
        environment = prepare(with_requirements(target, self.requirements), on_progress=on_progress)
        # A case names jars only where the user allowed code.
        named = [self.own_code.jar(text) for text in needs.jars] if self.own_code else []
        own = [*self.jars, *named]
        jars = local_jar_settings(own, environment.scala(), self.conf.get(LOCAL_JARS, "")) if own else {}
        kafka: KafkaAccess | HarnessError | None = None
        if needs.topics:
            try:
                kafka = self.kafka.access(
                    target.version, environment, jars.get(LOCAL_JARS, self.conf.get(LOCAL_JARS, "")), on_progress
                )
            except HarnessError as error:  # only the cases that read topics lack something
                on_progress(str(error))
                kafka = error
        of_kafka = dict(kafka.settings) if isinstance(kafka, KafkaAccess) else {}
        work = program.stage(target, self.root)
        on_progress(f"{target.name}: starting")
        cluster = self.cluster.settings(str(work)) if self.cluster else {}
        urls = [self.storage.url] if self.storage else []
        urls += [self.cluster.master] if self.cluster else []
        settings = {
            **self._tuning(target, more_jars=bool(needs.tables or named or self.accelerator)),
            **cluster,
            **self._modules(work),
            **self.conf,
            **self._jars(target),
        }
        settings |= jars | of_kafka | (_MANY_TASKS if needs.real_time else {}) | (_DEBUGGER if needs.main else {})
        added: dict[str, str] = {}
        packages = {"tables": [package_of(format) for format in needs.tables]}
        packages |= {"accelerator": [self.accelerator.package] if self.accelerator else []}
        for what, wanted in packages.items():
            if wanted:
                access = package_access(wanted, target.version, environment, settings, on_progress)
                of_user = {key: value for key, value in self.conf.items() if key not in LISTS}
                settings, added[what] = {**settings, **access.settings, **of_user}, access.description
        if self.accelerator is not None:
            settings[NATIVE] = self.accelerator.native
        own_jars = bool(self.packages or own or of_kafka or added)
        recording = self._archive_classes(environment, settings, own_jars=own_jars)
        if target.java.options:
            settings[_JAVA_OPTIONS] = f"{settings.get(_JAVA_OPTIONS, '')} {target.java.options}".strip()
        try:
            transport = program.start(
                "driver", environment, work, settings, self.cluster, storage=self.storage, variables=self.variables
            )
            if isinstance(kafka, KafkaAccess):
                kafka = self._listening(kafka, transport, on_progress)
            return DriverEngine(
                transport,
                work=str(work),
                cases=f"{self.storage}/{work.name}" if self.storage else None,
                place=EngineLocation(
                    self.name,
                    master=str(self.cluster) if self.cluster else None,
                    kafka=kafka.description if isinstance(kafka, KafkaAccess) else None,
                    tables=added.get("tables"),
                    accelerator=added.get("accelerator"),
                ),
                kafka=kafka.servers if isinstance(kafka, KafkaAccess) else kafka,
                code=self.own_code.paths() if self.own_code else None,
                start_timeout=program.START_SECONDS,
                redact=without_secrets(secrets_of({**settings, **self.variables}, urls)),
                finish=partial(_keep_archive, target, transport, recording, on_progress) if recording else None,
            )
        except BaseException as error:
            if recording is not None:
                recording.discard()
            if self.cluster and isinstance(error, EngineNotStarted) and error.reason is FailureReason.NO_EXECUTORS:
                self.cluster.check()
                raise HarnessError(f"{error.detail}. Start a worker, or end what uses the workers") from None
            raise

    def _listening(
        self, kafka: KafkaAccess, transport: SubprocessTransport, on_progress: ProgressCallback
    ) -> KafkaAccess | HarnessError:
        """The access once the broker listens, which starts beside the JVM of the engine, or why it does not."""
        try:
            self.kafka.wait()
        except HarnessError as error:
            on_progress(str(error))
            return error
        except BaseException:
            transport.close()
            raise
        return kafka

    def _archive_classes(
        self, environment: Environment, settings: dict[str, str], *, own_jars: bool
    ) -> ArchiveRecording | None:
        """Let the engine use the environment's class archive or, if there is none yet, write it.

        ``settings``: of the engine; gets the option of its JVM. ``own_jars``: whether it loads jars that Spark does not ship.
        """
        own_options = self.plain or _JAVA_OPTIONS in self.conf
        archive = ClassArchive.of(environment, settings) if not own_options else None
        if archive is None:
            return None
        added, recording = "", None
        if (file := archive.file()) is not None:
            added = option("SharedArchiveFile", file)
        # With somebody's settings it may load other classes, from other jars.
        elif not (self.conf or own_jars or self.cluster or self.storage or self.variables):
            recording = archive.record()
            added = option("ArchiveClassesAtExit", recording.partial) if recording else ""
        settings[_JAVA_OPTIONS] = f"{settings.get(_JAVA_OPTIONS, '')} {added}".strip()
        return recording

    def _modules(self, work: Path) -> dict[str, str]:
        """How Python workers find the user's code."""
        if self.own_code is None:
            return {}
        if self.cluster is None or self.cluster.on_this_machine:
            engine = (f"{work}/engine",) if self.cluster else ()
            return worker_settings((*engine, *self.own_code.paths()))
        # Executors on other machines do not see its folders, so Spark sends them a file.
        zipped = str(self.own_code.zipped(work))
        return {"spark.files": zipped, "spark.submit.pyFiles": zipped}

    def _tuning(self, target: Target, *, more_jars: bool = False) -> dict[str, str]:
        jars = more_jars or bool(self.jars or self._jars(target) or self.conf.keys() & _CONF_OF_JARS)
        # A Spark that the user installed may hold jars for the user's code, too.
        jars = jars or (self.own_code is not None and target.installed is not None)
        return {} if self.plain else tuning(target.version, own_disk=self.storage is None, own_jars=jars)

    def _jars(self, target: Target) -> dict[str, str]:
        return jar_settings(self.packages, target.version, self.conf.get(JARS, ""))

    def close(self) -> None:
        """End what engines share, a broker; each engine is closed by its user."""
        self.kafka.close()


def _keep_archive(
    target: Target, transport: SubprocessTransport, recording: ArchiveRecording, on_progress: ProgressCallback
) -> None:
    """Let an engine's JVM exit, and keep the class archive that it then writes."""
    on_progress(f"{target.name}: writing a class archive, so that later engines start faster")
    if transport.finish(_SECONDS_TO_WRITE_AN_ARCHIVE):
        recording.keep()
    else:
        recording.discard()
