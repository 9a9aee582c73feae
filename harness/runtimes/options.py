"""The user's options for engines, and the runtime that follows from them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, get_args

from conformance.core.errors import WrongUsage
from harness.engine.engine import Runtime
from harness.runtimes.cluster import Storage, StorageUrl
from harness.runtimes.connect import Beside, ConnectRuntime, Endpoint
from harness.runtimes.kafka_broker import Kafka
from harness.runtimes.local import EngineSettings, LocalRuntime
from harness.targets.targets import Targets

RuntimeName = Literal["local", "container"]
RUNTIME_NAMES: tuple[str, ...] = get_args(RuntimeName)


def variables_named(names: Iterable[str]) -> dict[str, str]:
    """The environment variables with these names. Raises ``WrongUsage`` if some have no value; it shows names only, no secrets."""
    wanted = tuple(dict.fromkeys(names))
    if missing := [name for name in wanted if name not in os.environ]:
        are = "is" if len(missing) == 1 else "are"
        raise WrongUsage(f"--env: {', '.join(missing)} {are} not set in this environment")
    return {name: os.environ[name] for name in wanted}


@dataclass(frozen=True, kw_only=True)
class RuntimeOptions(EngineSettings):
    """The user's options for engines. Containers use ``plain`` and ``own_code``, Connect ``own_code``, ``requirements``, ``variables``."""

    runtime: str = "local"
    """One of ``RUNTIME_NAMES``."""
    images: Iterable[str] = ()
    """``VERSION=REFERENCE``; they override the project's configuration."""
    memory: str | None = None
    """The limit of a container, such as ``3g``."""
    cpus: float | None = None
    endpoint: Endpoint | None = None
    """The Connect server that runs the cases; None to start engines."""
    beside_connect: bool = False
    """Whether the server runs only targets that are ``through_connect``, and others have engines of their own."""
    cluster_of: str | None = None
    """The name of the only target that uses the cluster; None if all do."""
    storage: Storage | None = None
    """Holds the files of cases; None for this machine's temporary folder. Containers use a volume."""
    kafka: str | None = None
    """``host:port`` of the broker for topics; None to start one when a case needs it. Only for ``local``."""

    @property
    def elsewhere(self) -> bool:
        """Whether engines do not read files of this machine at their paths."""
        return self.runtime != "local" or bool(self.endpoint or self.cluster or self.storage)

    @property
    def uses_java_here(self) -> bool:
        """Whether engines are JVMs of this machine: not those in containers, and not a Connect server."""
        return self.runtime == "local" and (self.endpoint is None or self.beside_connect)


def runtime(options: RuntimeOptions, root: Path, *, keep: bool) -> Runtime:
    """Make the runtime for the options.

    Args:
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
        return Beside(runtime(engines_here, root, keep=keep), connect, lambda target: target.through_connect)
    if options.cluster is not None and options.cluster_of is not None:
        only, of_all = options.cluster_of, replace(options, cluster_of=None)
        here = runtime(replace(of_all, cluster=None), root, keep=keep)
        return Beside(here, runtime(of_all, root, keep=keep), lambda target: target.name == only)
    if options.runtime == "local":
        settings = {setting.name: getattr(options, setting.name) for setting in fields(EngineSettings)}
        return LocalRuntime(root, storage=cases, kafka=Kafka(options.kafka), **settings)
    # The import of the container client is slow, so do it only here.
    from harness.runtimes.containers.images import Images, configured, parse
    from harness.runtimes.containers.runtime import Confinement, ContainerRuntime

    versions = [target.version for target in Targets.load().entries]
    images = Images({**configured(Path.cwd()), **parse(options.images, versions)})
    limits = {"memory": options.memory, "cpus": options.cpus}
    confinement = Confinement(**{name: limit for name, limit in limits.items() if limit is not None})  # type: ignore[arg-type]
    folder = root if keep else None
    return ContainerRuntime(images, confinement, keep=folder, plain=options.plain, own_code=options.own_code)
