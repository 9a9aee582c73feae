"""The ways to bring engines up, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from harness.engine.engine import Runtime
from harness.runtimes.cluster import Cluster
from harness.runtimes.configuration import Configuration
from harness.runtimes.connect import ConnectRuntime, Endpoint
from harness.runtimes.containers.choice import parse
from harness.runtimes.local import LocalRuntime
from harness.runtimes.storage import Storage, StorageUrl
from harness.targets.catalogue import Targets

Name = Literal["local", "container"]
NAMES: tuple[str, ...] = get_args(Name)


@dataclass(frozen=True)
class RuntimeOptions:
    """What a person said about where engines run."""

    runtime: str = "local"
    """One of ``NAMES``."""
    images: Iterable[str] = ()
    """``VERSION=REFERENCE``, stronger than the project's configuration."""
    memory: str | None = None
    """Of a container, such as ``3g``."""
    cpus: float | None = None
    """Of a container."""
    plain: bool = False
    """Whether Spark's defaults are left as they are."""
    code_path: Path | None = None
    """Folder for modules that ``call`` names, None where the user did not allow code."""
    cluster: Cluster | None = None
    """Where executors come from; None for the engine's own process. Only ``local`` has it."""
    endpoint: Endpoint | None = None
    """Of the Connect server that runs the cases; None where engines are started."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of each engine. Only ``local`` has them."""
    storage: Storage | None = None
    """Where cases have their files; None for this machine's folder for temporary files. Containers have a place of their own."""


def runtime(wishes: RuntimeOptions, root: Path, *, keep: bool) -> Runtime:
    """The runtime somebody wishes for.

    Args:
        wishes: what was said.
        root: a folder of this machine for working files.
        keep: whether working files shall be in ``root`` when the runtime is closed, wherever engines ran.

    Raises:
        NotAnImage, NotALimit, InvalidCase: a wish, or the project's configuration, makes no sense.
        NoDaemon: ``container``, and no container engine answers.
    """
    cases = wishes.storage.of_a_run() if isinstance(wishes.storage, StorageUrl) else None
    if wishes.endpoint is not None:
        return ConnectRuntime(root, wishes.endpoint, code_path=wishes.code_path, storage=cases)
    if wishes.runtime == "local":
        return LocalRuntime(
            root,
            plain=wishes.plain,
            code_path=wishes.code_path,
            cluster=wishes.cluster,
            conf=wishes.conf,
            storage=cases,
        )
    # Only who asks for containers waits for their client to be imported.
    from harness.runtimes.containers.confinement import Confinement
    from harness.runtimes.containers.images import Images
    from harness.runtimes.containers.runtime import ContainerRuntime

    versions = [target.version for target in Targets.load().entries]
    said = {**Configuration.read(Path.cwd()).images, **parse(wishes.images, versions)}
    limits = {"memory": wishes.memory, "cpus": wishes.cpus}
    confinement = Confinement(**{name: limit for name, limit in limits.items() if limit is not None})  # type: ignore[arg-type]
    return ContainerRuntime(
        Images(said),
        confinement,
        keep=root if keep else None,
        plain=wishes.plain,
        code_path=wishes.code_path,
    )
