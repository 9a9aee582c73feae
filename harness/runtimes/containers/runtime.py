"""The ``container`` runtime: each engine in its own confined container without network, removed afterwards."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from typing import Any

from conformance.core.case import Case
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, Engine, EngineDied, EngineLocation, EngineNeeds, EngineNotStarted
from harness.engine.protocol import FailureReason
from harness.environments.installer import specifier
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.containers import daemon
from harness.runtimes.containers.attached import AttachedTransport
from harness.runtimes.containers.client import APIError, LogConfig, NotFound
from harness.runtimes.containers.confinement import WORK, Confinement
from harness.runtimes.containers.daemon import DaemonRefused, Owner, abilities, connect, explained
from harness.runtimes.containers.images import Account, Image, Images, choose_account
from harness.runtimes.containers.volume import Volume, packed
from harness.runtimes.own_code import OwnCode, worker_settings
from harness.targets.targets import Target, tuning


class UnusableImage(HarnessError):
    """The driver cannot run in the image."""

    def __init__(self, image: Image, target: Target, why: str) -> None:
        super().__init__(f"The image {image.reference} cannot run Spark {target.version}: {why}")


class ContainerRuntime:
    """Starts engines in containers.

    Args:
        images: which image each target runs in.
        confinement: the limits of a container.
        keep: a folder for a copy of the working files when the runtime is closed; None for no copy.
        plain: keep Spark's defaults instead of the settings of ``tuning.yaml``.
        own_code: the modules that ``call`` may name; None if the user did not allow code.

    Raises:
        NoDaemon: no container engine is reachable.
    """

    name = "container"

    def __init__(
        self,
        images: Images,
        confinement: Confinement,
        *,
        keep: Path | None = None,
        plain: bool = False,
        own_code: OwnCode | None = None,
    ) -> None:
        self._images = images
        self._confinement = confinement
        self._keep = keep
        self._plain = plain
        self._own_code = own_code
        self._client = connect()
        self._abilities = abilities(self._client)
        self._unlimited = self._abilities.missing
        self._owner = Owner.new()
        self._lock = threading.Lock()
        self._volume: Volume | None = None
        self._accounts: dict[str, Account] = {}
        self._numbers = count(1)
        self._copied_through: Image | None = None

    def unsupported(self, case: Case, _target: Target) -> str | None:
        if case.topics:
            return "its rows come from Kafka, and a container has no network to reach a broker; run it without --runtime container"
        return None

    def fingerprint(self, target: Target) -> str | None:
        image = self._images.available(target, self._client)
        return json.dumps([self.name, image.id, self._settings(target)]) if image else None

    def start(
        self,
        target: Target,
        *,
        on_progress: ProgressCallback,
        needs: EngineNeeds = NOTHING_ELSE,  # noqa: ARG002
    ) -> Engine:
        image = self._images.get(target, self._client, on_progress)
        account = self._account(image, target)
        volume = self._shared_volume()
        on_progress(f"starting in {image.reference}")
        self._report_missing_limits(on_progress)
        work = f"{target.key}-{next(self._numbers)}"
        container = self._create(image, target, account, volume, f"{WORK}/{work}")
        try:
            volume.put(container, self._files(work))
            self._copied_through = image
            transport = AttachedTransport(container, memory=self._confinement.memory)
        except BaseException:
            daemon.remove_container(self._client.client.api, container.id)
            raise
        try:
            transport.start()
        except APIError as error:
            transport.close()
            raise _not_started(image, target, error) from error
        except BaseException:
            transport.close()
            raise
        engine = self._engine(transport, image, target, f"{WORK}/{work}")
        if not _is_release(engine.identity.spark, target):
            engine.close()
            raise UnusableImage(
                image,
                target,
                f"it contains Spark {engine.identity.spark}. "
                f"Choose another: --image {target.version}=registry/spark:tag",
            )
        if engine.identity.python not in target.python:
            on_progress(
                f"Spark {target.version} does not support Python {engine.identity.python}, only {specifier(target.python)}"
            )
        return engine

    def close(self) -> None:
        """Remove every container of this run, copy the working files if requested, remove the volume."""
        try:
            for leftover in daemon.find_leftovers(self._client, self._owner):
                if leftover.kind == "container":
                    daemon.remove_leftover(self._client, leftover)
            with self._lock:
                volume, self._volume = self._volume, None
            if volume is not None:
                self._remove(volume)
        finally:
            self._client.client.close()

    def _remove(self, volume: Volume) -> None:
        try:
            if self._keep is not None and self._copied_through is not None:
                through = self._bare(self._copied_through, volume)
                try:
                    volume.fetch(through, self._keep)
                finally:
                    daemon.remove_container(self._client.client.api, through.id)
        finally:
            volume.remove()

    def _engine(self, transport: AttachedTransport, image: Image, target: Target, work: str) -> DriverEngine:
        try:
            return DriverEngine(
                transport,
                work=work,
                place=EngineLocation(self.name, image.reference, image.digest),
                code=self._copies(work) if self._own_code is not None else None,
                start_timeout=program.START_SECONDS,
            )
        except EngineDied as error:
            reason = error.reason if isinstance(error, EngineNotStarted) else None
            if reason is FailureReason.PYSPARK_MISSING:
                raise UnusableImage(image, target, "its python3 finds no pyspark.") from error
            if reason is FailureReason.PYTHON_UNSUPPORTED or _python_rejects_driver(error.log):
                raise UnusableImage(image, target, f"its python3 cannot run the driver.\n{error}") from error
            raise

    def _report_missing_limits(self, on_progress: ProgressCallback) -> None:
        with self._lock:
            missing, self._unlimited = self._unlimited, ()
        if missing:
            on_progress(f"this container engine cannot limit {' and '.join(missing)}")

    def _shared_volume(self) -> Volume:
        with self._lock:
            if self._volume is None:
                self._volume = Volume(self._client, self._owner, self._confinement.volume)
            return self._volume

    def _create(self, image: Image, target: Target, account: Account, volume: Volume, work: str) -> Any:
        """The container, not started yet: its output is not read before it is attached."""
        settings = self._settings(target) | worker_settings(self._copies(work))
        try:
            return self._client.create(
                image.reference,
                command=[
                    "-m",
                    "driver",
                    "--shared",
                    work,
                    *(f"{key}={value}" for key, value in settings.items()),
                ],
                labels=self._owner.labels,
                entrypoint=["python3"],
                working_dir=f"{work}/engine",
                user=str(account),
                volumes=volume.mounts,
                stdin_open=True,
                log_config=LogConfig(type="none"),
                **self._confinement.arguments(self._abilities),
            )
        except (APIError, NotFound) as error:
            raise DaemonRefused(f"a container of {image.reference}", error) from error

    def _settings(self, target: Target) -> dict[str, str]:
        tuned = {} if self._plain else tuning(target.version, own_code=self._own_code is not None)
        # The users of other images may resume a query, so they need to write to its directories too.
        return {**tuned, "spark.hadoop.fs.permissions.umask-mode": "000"}

    def _bare(self, image: Image, volume: Volume | None = None) -> Any:
        """A container that never runs, to copy files from."""
        return self._client.create(
            image.reference,
            command=["true"],
            entrypoint=["true"],
            labels=self._owner.labels,
            network="none",
            volumes=volume.mounts if volume else None,
        )

    def _account(self, image: Image, target: Target) -> Account:
        if image.id not in self._accounts:
            account = choose_account(self._passwd(image), image.user)
            if account is None:
                raise UnusableImage(image, target, "its /etc/passwd has no user but root; add one named spark.")
            self._accounts[image.id] = account
        return self._accounts[image.id]

    def _passwd(self, image: Image) -> str:
        container = self._bare(image)
        try:
            chunks, _ = container.get_archive("/etc/passwd")
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
                member = archive.extractfile("passwd")
                return member.read().decode("utf-8", errors="replace") if member else ""
        except NotFound:
            return ""
        finally:
            daemon.remove_container(self._client.client.api, container.id)

    def _files(self, work: str) -> bytes:
        with as_file(files("harness.driver")) as driver:
            trees = [("engine", driver.parent, tuple(driver.glob("*.py")))]
            return packed(work, [*trees, *(self._own_code.files() if self._own_code is not None else ())])

    def _copies(self, work: str) -> tuple[str, ...]:
        """Where the user's code is in the container."""
        return tuple(f"{work}/{name}" for name, _, _ in self._own_code.files()) if self._own_code is not None else ()


def _not_started(image: Image, target: Target, error: APIError) -> HarnessError:
    # The daemon reports a missing program only in the text of the container runtime's error.
    why = explained(error)
    missing = any(text in why for text in ("executable file not found", "no such file or directory"))
    if missing and "python3" in why:
        return UnusableImage(image, target, "it has no python3.")
    return DaemonRefused(f"to start a container of {image.reference}", error)


def _python_rejects_driver(log: str) -> bool:
    """Whether Python's own message says so: an interpreter that cannot parse or import the driver ends before it can send one of ours."""
    return "No module named" in log or "SyntaxError" in log


def _is_release(spark: str, target: Target) -> bool:
    """Whether a version is the target's, apart from a vendor's suffix."""
    return spark == str(target.version) or spark.startswith((f"{target.version}-", f"{target.version}."))
