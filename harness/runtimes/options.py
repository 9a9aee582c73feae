"""The user's options for engines, and the runtime that follows from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from conformance.core.errors import WrongUsage
from harness.engine.engine import Runtime
from harness.runtimes.cluster import Cluster, Storage, StorageUrl
from harness.runtimes.connect import BesideConnect, ConnectRuntime, Endpoint
from harness.runtimes.containers.choice import Configuration, parse
from harness.runtimes.kafka import Kafka
from harness.runtimes.local import LocalRuntime
from harness.runtimes.own_code import JarPackage, OwnCode
from harness.targets.targets import Targets

Name = Literal["local", "container"]
NAMES: tuple[str, ...] = get_args(Name)


def variables_named(names: Iterable[str]) -> dict[str, str]:
    """The environment variables with these names, for engines.

    Raises:
        WrongUsage: some have no value; the message contains only names, because values may be secret.
    """
    wanted = tuple(dict.fromkeys(names))
    missing = [name for name in wanted if name not in os.environ]
    if missing:
        raise WrongUsage(
            f"--env: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set in this environment"
        )
    return {name: os.environ[name] for name in wanted}


@dataclass(frozen=True)
class RuntimeOptions:
    """The user's options for engines."""

    runtime: str = "local"
    """One of ``NAMES``."""
    images: Iterable[str] = ()
    """``VERSION=REFERENCE``; they override the project's configuration."""
    memory: str | None = None
    """Of a container, such as ``3g``."""
    cpus: float | None = None
    """Of a container."""
    plain: bool = False
    """Whether to keep Spark's defaults."""
    own_code: OwnCode | None = None
    """The modules that ``call`` may name; None if the user did not allow code."""
    requirements: Sequence[str] = ()
    """Python packages of the user's code. Not for containers."""
    packages: Sequence[JarPackage] = ()
    """Java packages of the user's code. Only for ``local``."""
    cluster: Cluster | None = None
    """Provides executors; None for the engine's own process. Only for ``local``."""
    endpoint: Endpoint | None = None
    """Of the Connect server that runs the cases; None to start engines."""
    beside_connect: bool = False
    """Whether the server runs only targets that are ``through_connect``, and others have engines of their own."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of each engine. Only for ``local``."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional environment variables of each engine. Not for containers."""
    storage: Storage | None = None
    """Holds the files of cases; None for this machine's temporary folder. Containers use a volume."""
    kafka: str | None = None
    """``host:port`` of the broker for topics; None to start one when a case needs it. Only for ``local``."""

    @property
    def uses_java_here(self) -> bool:
        """Whether engines are JVMs of this machine: not those in containers, and not a Connect server."""
        return self.runtime == "local" and (self.endpoint is None or self.beside_connect)


def runtime(options: RuntimeOptions, root: Path, *, keep: bool) -> Runtime:
    """The runtime for the options.

    Args:
        options: the user's.
        root: a folder of this machine for working files.
        keep: whether to copy the working files to ``root`` when the runtime is closed, wherever engines ran.

    Raises:
        WrongUsage, InvalidCase: an option, or the project's configuration, is invalid.
        NoDaemon: ``container``, and no container engine answers.
        HarnessError: no broker listens at ``options.kafka``.
    """
    cases = options.storage.unique_directory() if isinstance(options.storage, StorageUrl) else None
    if options.endpoint is not None:
        connect = ConnectRuntime(
            root,
            options.endpoint,
            own_code=options.own_code,
            requirements=options.requirements,
            storage=cases,
            variables=options.variables,
        )
        if not options.beside_connect:
            return connect
        engines_here = replace(options, endpoint=None, beside_connect=False)
        return BesideConnect(runtime(engines_here, root, keep=keep), connect)
    if options.runtime == "local":
        return LocalRuntime(
            root,
            plain=options.plain,
            own_code=options.own_code,
            requirements=options.requirements,
            packages=options.packages,
            cluster=options.cluster,
            conf=options.conf,
            storage=cases,
            variables=options.variables,
            kafka=Kafka(options.kafka),
        )
    # The import of the container client is slow, so do it only here.
    from harness.runtimes.containers.confinement import Confinement
    from harness.runtimes.containers.images import Images
    from harness.runtimes.containers.runtime import ContainerRuntime

    versions = [target.version for target in Targets.load().entries]
    images = {**Configuration.read(Path.cwd()).images, **parse(options.images, versions)}
    limits = {"memory": options.memory, "cpus": options.cpus}
    confinement = Confinement(**{name: limit for name, limit in limits.items() if limit is not None})  # type: ignore[arg-type]
    return ContainerRuntime(
        Images(images),
        confinement,
        keep=root if keep else None,
        plain=options.plain,
        own_code=options.own_code,
    )
