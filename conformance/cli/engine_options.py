"""Options of the commands that run engines: where engines run, the user's own code that they run, and how much runs at once.

Of a comparison of two versions they say, too, on which side a cluster or a Connect server runs.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from conformance.cli.options import ENGINES, SPEED, refuse, shared
from conformance.core.versions import StoreName
from conformance.core.wording import counted
from conformance.runner.project import PYPROJECT, TABLE, ProjectSettings, own_job
from conformance.runner.resources import STEP_TIMEOUT_S, Concurrency, EngineUse, single_target
from harness.runtimes.cluster import Cluster, StorageUrl, parse_storage, settings_in, settings_of
from harness.runtimes.connect import Endpoint, NoConnect
from harness.runtimes.kafka_broker import parse_servers
from harness.runtimes.options import RuntimeName as RuntimeName
from harness.runtimes.options import RuntimeOptions, variables_named
from harness.targets.targets import Target

CONNECT, STORAGE = "CONFORMANCE_CONNECT", "CONFORMANCE_STORAGE"
"""Variables that stand for ``--connect`` and ``--storage``."""

StateStore = Annotated[
    StoreName | None,
    shared(
        "Keep state here, except in cases that choose a store. Skips versions that lack it.", "hdfs|rocksdb", ENGINES
    ),
]
RuntimeOption = Annotated[
    RuntimeName, shared("Run engines on this machine, or each in a container.", "local|container", ENGINES)
]
Env = Annotated[
    list[str] | None,
    shared(
        "Pass this environment variable to engines; they get only the most common ones. Repeatable.", "NAME", ENGINES
    ),
]
StepTimeout = Annotated[float, shared("Time limit of one step.", "SECONDS", SPEED, min=1, max=86400)]
Fresh = Annotated[bool, shared("Ignore cached results.", None, SPEED, "--fresh")]


@dataclass(frozen=True)
class Speed(Concurrency):
    jobs: Annotated[
        int | None,
        shared(
            "Engines at a time; by default what cores and memory allow, never more than memory allows.",
            "N",
            SPEED,
            min=1,
        ),
    ] = None
    side_by_side: Annotated[
        int | None,
        shared(
            "Cases at a time in each engine; by default what the cores allow, at most 8.", "N", SPEED, min=1, max=64
        ),
    ] = None
    step_timeout: StepTimeout = STEP_TIMEOUT_S


@dataclass(frozen=True)
class EngineOptions:
    runtime: RuntimeOption = "local"
    image: Annotated[
        list[str] | None,
        shared(
            "Container image of a version, a line or `all`; {spark} is the version. Repeatable.",
            "VERSION=IMAGE",
            ENGINES,
        ),
    ] = None
    memory: Annotated[str | None, shared("Memory of each container; 3g by default.", "SIZE", ENGINES)] = None
    cpus: Annotated[float | None, shared("CPUs of each container; 2 by default.", "N", ENGINES)] = None
    plain: Annotated[
        bool, shared("Keep Spark's defaults: leave out settings that only save time.", None, ENGINES, "--plain")
    ] = False
    kafka: Annotated[
        str | None, shared("Kafka broker for cases that read topics; by default one is started.", "HOST:PORT", ENGINES)
    ] = None
    env: Env = None
    work: Annotated[
        Path | None, shared("Keep working files in this folder; by default they are temporary.", "FOLDER", ENGINES)
    ] = None


@dataclass(frozen=True)
class Settings:
    conf: Annotated[
        list[str] | None,
        shared("Spark setting of each engine, such as spark.executor.memory=2g. Repeatable.", "KEY=VALUE", ENGINES),
    ] = None
    properties_file: Annotated[
        Path | None,
        shared("Spark settings, a key and a value per line; for secrets: others can read --conf.", "FILE", ENGINES),
    ] = None

    def settings(self) -> dict[str, str]:
        """Spark settings of each engine; see `harness.runtimes.cluster` for errors."""
        of_the_file = settings_in(self.properties_file) if self.properties_file else {}
        return {**of_the_file, **settings_of(self.conf or ())}


@dataclass(frozen=True)
class ClusterOptions(Settings):
    master: Annotated[
        str | None,
        shared("Run tasks in a cluster: spark://host:7077, yarn, k8s://…, local-cluster[2,1,1024].", "URL", ENGINES),
    ] = None
    storage: Annotated[
        str | None,
        shared(
            "Folder that all machines share, or URL such as hdfs://host:8020/tests: input, checkpoints, state.",
            "PLACE",
            ENGINES,
            envvar=STORAGE,
        ),
    ] = None


OWN_CODE = "Your own code"

Folders = Annotated[
    list[Path] | None,
    shared("Folder of your modules; by default your project's root and its src. Repeatable.", "FOLDER", OWN_CODE),
]


@dataclass(frozen=True)
class Code:
    allow_code: Annotated[
        bool, shared("Let cases run their own code: Python, any SQL, any setting.", None, OWN_CODE, "--allow-code")
    ] = False
    code: Folders = None
    requirements: Annotated[
        Path | None, shared("Python packages of your code, a requirement per line.", "FILE", OWN_CODE)
    ] = None
    package: Annotated[
        list[str] | None,
        shared(
            "Java package from Maven, such as 3.5=io.delta:delta-spark_2.12:3.2.0, for a version, a line or all. Repeatable.",
            "VERSION=PACKAGE",
            OWN_CODE,
        ),
    ] = None

    jar: Annotated[
        list[str] | None,
        shared(
            "Jar of your code; one for each version of Scala, such as 2.12=a.jar, if needed. Repeatable.",
            "FILE",
            OWN_CODE,
        ),
    ] = None

    def job(self, conf: dict[str, str]) -> RuntimeOptions:
        """What engines need, by these options and by ``[tool.conformance]`` of the project; WrongUsage if one is wrong."""
        project = ProjectSettings.read(Path.cwd())
        ignored = () if self.allow_code else project.needs_permission()
        if ignored:
            typer.echo(f"{PYPROJECT}: {', '.join(ignored)} in {TABLE} need --allow-code, and were left out", err=True)
        return own_job(
            project,
            allow_code=self.allow_code,
            code=self.code or (),
            requirements=self.requirements,
            packages=self.package or (),
            jars=self.jar or (),
            conf=conf,
        )


@dataclass(frozen=True)
class JobCode(Code):
    """The code of a job, which the command always runs."""

    allow_code: bool = field(default=True, init=False)


def runtime_options(
    engines: EngineOptions, settings: Settings | None = None, *, connect: str | None = None, code: Code | None = None
) -> RuntimeOptions:
    """Where engines run, by options that fit together; ``settings`` may be a `Cluster`; without ``code`` nothing of the project counts.

    Raises:
        typer.BadParameter: an option needs a container, or excludes one; or machines of a cluster or server share no storage.
        WrongUsage: the text of an option, or a file that it names, is wrong.
    """
    # They may hold secrets, and every program that is started from here on would get them: uv, a shell, an engine.
    for name in (CONNECT, STORAGE):
        os.environ.pop(name, None)
    cluster = settings if isinstance(settings, ClusterOptions) else ClusterOptions(**vars(settings or Settings()))
    container = engines.runtime == "container"
    variables = variables_named(engines.env or ())
    of_containers = {"--image": engines.image, "--memory": engines.memory, "--cpus": engines.cpus}
    given_settings = {"--conf": cluster.conf, "--properties-file": cluster.properties_file}
    packages = {"--package": code.package, "--jar": code.jar} if code else {}
    requirements = {"--requirements": code.requirements} if code else {}
    started = {"--master": cluster.master, **given_settings}
    of_engines_here = {**started, "--connect": connect, **packages, **requirements}
    of_started_engines = {**started, **packages, "--plain": engines.plain}
    # Which of several clashes is reported follows from the order.
    refuse(of_containers, "only for containers: add --runtime container", clashes=not container)
    refuse({"--storage": cluster.storage}, "a container has its own volume: omit --runtime", clashes=container)
    broker = {"--kafka": engines.kafka}
    refuse(broker, "a container has no network to reach a broker: omit --runtime", clashes=container)
    refuse(broker, "through Connect no topic is read: omit it or --connect", clashes=bool(connect))
    no_variables = "a container gets no variables of this machine: omit --runtime"
    refuse({"--env": variables}, no_variables, clashes=container)
    refuse(of_engines_here, "a container has its own engine: omit --runtime", clashes=container)
    refuse(of_started_engines, "the Connect server has its own: omit it or --connect", clashes=bool(connect))
    if engines.kafka is not None:
        parse_servers(engines.kafka)
    master = Cluster.parse(cluster.master) if cluster.master else None
    endpoint = Endpoint.parse(connect) if connect else None
    elsewhere = master or endpoint
    if elsewhere is not None and not elsewhere.on_this_machine and cluster.storage is None:
        what = f"the machines of {elsewhere} must share files with this one"
        raise typer.BadParameter(f"{what}: pass a folder that all of them share, or a URL", param_hint="--storage")
    job = code.job(cluster.settings()) if code else RuntimeOptions(conf=cluster.settings())
    return replace(
        job,
        runtime=engines.runtime,
        cluster=master,
        endpoint=endpoint,
        # A container, and a Connect server, have their own.
        conf={} if container or connect else job.conf,
        variables=variables,
        storage=parse_storage(cluster.storage) if cluster.storage else None,
        images=tuple(engines.image or ()),
        memory=engines.memory,
        cpus=engines.cpus,
        plain=engines.plain,
        kafka=engines.kafka,
        requirements=() if container else job.requirements,
        packages=() if container or connect else job.packages,
        jars=() if container or connect else job.jars,
    )


def one_target(spec: str, name: str, *, runs: bool = True) -> tuple[Target, tuple[str, ...]]:
    """The single target that an option means, which ``runs`` here, with notes; BadParameter for several; see `Targets.choose`."""
    return single_target(
        spec,
        lambda number: typer.BadParameter(f"{spec} means {counted(number, 'version')}: name one", param_hint=name),
        runs=runs,
    )


Side: TypeAlias = Literal["from", "to"]


@dataclass(frozen=True)
class ConnectSides:
    connect: Annotated[
        str | None,
        shared("One side runs through this Spark Connect server, on this machine: sc://host:15002.", "URL", ENGINES),
    ] = None
    connect_side: Annotated[
        Side | None,
        shared(
            f"The side of --connect; by default --to. The address may then be in {CONNECT}.",
            "from|to",
            ENGINES,
        ),
    ] = None

    @property
    def address(self) -> str | None:
        """The Connect server of one side; BadParameter if there is none though a side is named, or if it is on another machine."""
        # Alone, the variable says nothing about a comparison: other commands use it too.
        address = self.connect or (os.environ.get(CONNECT) if self.connect_side else None)
        if address is None and self.connect_side is not None:
            what = f"pass the address of the server, --connect or {CONNECT}"
            raise typer.BadParameter(what, param_hint="--connect-side")
        if address is not None and not Endpoint.parse(address).on_this_machine:
            what = "run this on the machine of the server, with its address there, sc://localhost:15002"
            raise typer.BadParameter(f"both sides use the same files: {what}", param_hint="--connect")
        return address


@dataclass(frozen=True)
class Sides(ConnectSides):
    master_side: Annotated[
        Side | None,
        shared("The only side that uses the cluster of --master; by default both do.", "from|to", ENGINES),
    ] = None

    def placed(self, before: Target, after: Target, where: EngineUse) -> tuple[Target, Target, EngineUse]:
        """Both versions, and where their engines run; NoConnect if the version of the Connect server has no streaming queries there.

        Raises typer.BadParameter: a side is named without a cluster, or a checkpoint cannot move between the sides.
        """
        runtime = where.runtime
        if self.master_side is not None and runtime.cluster is None:
            raise typer.BadParameter("pass the cluster of this side, --master", param_hint="--master-side")
        if isinstance(runtime.storage, StorageUrl):
            what = "checkpoints are copied from one version to the other: pass a folder that all machines share"
            raise typer.BadParameter(what, param_hint="--storage")
        if runtime.endpoint is not None:
            runtime = replace(runtime, beside_connect=True)
            side = before if self.connect_side == "from" else after
            if not side.connect:
                raise NoConnect(side)
            through = replace(side, through_connect=True)
            before, after = (through, after) if self.connect_side == "from" else (before, through)
        elif self.master_side is not None:
            runtime = replace(runtime, cluster_of=(before if self.master_side == "from" else after).name)
        return before, after, replace(where, runtime=runtime)
