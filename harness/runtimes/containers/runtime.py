"""The ``container`` runtime: each engine in its own confined container without network, removed afterwards.

Working files are in one volume, at the same path in every container of the run. A volume instead of a bind mount: it works with a
daemon on another machine, and no file on this machine belongs to a container's user. Files that are needed here are copied, and belong
to the user who runs the suite. The harness talks to the driver through the standard input, output and error of its container.
"""

import contextlib
import io
import json
import queue
import re
import tarfile
import threading
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path
from typing import Any

from conformance.core.case import Case
from conformance.core.errors import WrongUsage
from harness.driver.errors import FailureReason
from harness.engine.driver_engine import DriverEngine
from harness.engine.engine import NOTHING_ELSE, Engine, EngineDied, EngineLocation, EngineNeeds, EngineNotStarted
from harness.engine.transport import LONGEST_LINE, TransportClosed, how_it_ended
from harness.environments.installer import specifier
from harness.errors import HarnessError
from harness.progress import ProgressCallback
from harness.runtimes import program
from harness.runtimes.containers import daemon
from harness.runtimes.containers.client import (
    STDOUT,
    APIError,
    DockerClient,
    DockerException,
    LogConfig,
    NotFound,
    SocketError,
    frames_iter,
    requests,
)
from harness.runtimes.containers.daemon import (
    DaemonRefused,
    Owner,
    connect,
    explained,
    missing_limits,
    remove_container,
)
from harness.runtimes.containers.images import Image, Images, choose_account
from harness.runtimes.own_code import OwnCode, worker_settings
from harness.targets.targets import Target, tuning

_ENDING_SECONDS = 60
"""A busy daemon takes its time to notice that a container has ended."""


class AttachedTransport:
    """Attached to a container (docker's object) before it starts, so that no output is missed. ``memory``: its limit, for a message."""

    def __init__(self, container: Any, *, memory: str) -> None:
        self._container = container
        self._api = container.client.api
        self._memory = memory
        self._socket = self._api.attach_socket(container.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        # An SSH channel is itself the socket.
        self._wire = getattr(self._socket, "_sock", self._socket)
        # The client's timeout is for requests; an engine may be silent for minutes.
        self._api._disable_socket_timeout(self._socket)
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._log: queue.Queue[str | None] = queue.Queue()
        self._closed = threading.Lock()
        self._pump = threading.Thread(target=self._split_frames, daemon=True)

    def start(self) -> None:
        """Start the container. Raises ``docker.errors.APIError`` if the daemon cannot, for example because the image lacks the program."""
        self._container.start()
        self._pump.start()

    def write(self, line: str) -> None:
        try:
            self._wire.sendall(f"{line}\n".encode())
        except (OSError, ValueError) as error:
            raise TransportClosed from error

    def answers(self) -> Iterator[str]:
        return iter(self._answers.get, None)

    def log(self) -> Iterator[str]:
        return iter(self._log.get, None)

    def ending(self) -> str:
        try:
            self._container.wait(timeout=_ENDING_SECONDS)
            self._container.reload()
        except NotFound:
            return "its container removed by another process"
        except (DockerException, requests.exceptions.RequestException):
            return "its container still running but silent"
        state = self._container.attrs["State"]
        if state.get("OOMKilled"):
            return f"its container out of memory: the limit is {self._memory}, --memory raises it"
        return how_it_ended(int(state["ExitCode"]), as_shell=True)

    def kill(self) -> None:
        with contextlib.suppress(NotFound, APIError):  # it may have ended by itself
            self._container.kill(signal="SIGKILL")

    def close(self) -> None:
        """Remove the container, running or not."""
        if not self._closed.acquire(blocking=False):
            return
        with contextlib.suppress(APIError):  # not every container engine kills a paused container
            self._container.unpause()
        remove_container(self._api, self._container.id)
        with contextlib.suppress(OSError):
            self._socket.close()
            self._wire.close()
        if self._pump.is_alive():
            self._pump.join(_ENDING_SECONDS)
        self._answers.put(None)
        self._log.put(None)

    def _split_frames(self) -> None:
        """Split the daemon's frames into lines of both outputs."""
        rest = {True: bytearray(), False: bytearray()}
        with contextlib.suppress(OSError, SocketError, ValueError, requests.exceptions.RequestException):
            for stream, data in frames_iter(self._socket, tty=False):
                out = stream == STDOUT
                rest[out] += data
                if b"\n" in data:
                    *lines, rest[out] = rest[out].split(b"\n")
                    for line in lines:
                        self._line(out, line)
                elif len(rest[out]) > LONGEST_LINE:
                    break
        for out, line in rest.items():
            if line:
                self._line(out, line)
        self._answers.put(None)
        self._log.put(None)

    def _line(self, out: bool, line: bytearray) -> None:
        (self._answers if out else self._log).put(line.decode("utf-8", errors="replace"))


WORK = "/conformance"
"""The path of the run's volume in every container: checkpoints hold absolute paths and may be resumed in another container."""

_SIZE = re.compile(r"\d+[kmg]?", re.IGNORECASE)
_PROCESSES = 2048

_ENVIRONMENT: Mapping[str, str] = {
    # The JVM looks up its own address by host name, and there is no network.
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_LOCAL_HOSTNAME": "localhost",
    # The home of the user in official images is not writable.
    "HOME": "/tmp",
    "JAVA_TOOL_OPTIONS": "-Duser.home=/tmp",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
}


@dataclass(frozen=True)
class Confinement:
    """What a container may do: only what Spark in local mode needs, within these limits."""

    memory: str = "3g"
    """For the driver, its JVM (1 GiB of heap), its Python workers, and their files in ``/tmp``."""
    cpus: float = 2.0
    volume: Mapping[str, str] = field(default_factory=dict)
    """Options of the ``local`` volume driver, for working files on another disk."""

    def __post_init__(self) -> None:
        if not _SIZE.fullmatch(self.memory):
            raise WrongUsage(f"--memory {self.memory}: not a size; use bytes or a number with k, m or g, such as 3g")
        if self.cpus <= 0:
            raise WrongUsage(f"--cpus {self.cpus}: not a positive number of processors, such as 2 or 0.5")

    def arguments(self, missing: Container[str] = ()) -> dict[str, Any]:
        """Arguments for the creation of a container. ``missing``: the limits that the daemon cannot enforce, `daemon.missing_limits`."""
        limits: dict[str, Any] = {}
        if "memory" not in missing:
            limits["mem_limit"] = self.memory
            if "swap" not in missing:
                limits["memswap_limit"] = self.memory
        if "CPU" not in missing:
            limits["nano_cpus"] = int(self.cpus * 1e9)
        if "processes" not in missing:
            limits["pids_limit"] = _PROCESSES
        return {
            "network": "none",
            "hostname": "localhost",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "read_only": True,
            # In memory; native libraries are unpacked there and loaded.
            "tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=512m"},
            "environment": dict(_ENVIRONMENT),
            **limits,
        }


_ANYBODY = 0o777
"""Containers of several images share the volume, and their users have different ids."""


class Volume:
    """A labelled volume; raises ``DaemonRefused`` if it cannot be made."""

    def __init__(self, client: DockerClient, owner: Owner, options: Mapping[str, str]) -> None:
        self._client = client
        self.name = f"watermark-conformance-{owner.run}"
        try:
            client.client.volumes.create(self.name, driver="local", driver_opts=dict(options), labels=owner.labels)
        except APIError as error:
            raise DaemonRefused("a volume for working files", error) from error

    @property
    def mounts(self) -> dict[str, dict[str, str]]:
        """The mount, as the daemon takes it."""
        return {self.name: {"bind": WORK, "mode": "rw"}}

    def put(self, container: Any, archive: bytes) -> None:
        """Unpack an archive into the volume, through a container that mounts it and does not run yet; raises ``DaemonRefused``."""
        try:
            container.put_archive(WORK, archive)
        except APIError as error:
            raise DaemonRefused("the driver's files", error) from error

    def fetch(self, container: Any, folder: Path) -> None:
        """Copy the content of the volume to a folder of this machine, through any container that mounts it."""
        stream, _ = container.get_archive(f"{WORK}/.")
        with tarfile.open(fileobj=_Stream(stream), mode="r|*") as archive:
            for member in archive:
                if member.isfile() or member.isdir():  # code of a case may have made links, pipes and devices
                    archive.extract(member, folder, filter="data")

    def remove(self) -> None:
        """Remove it with its content; its containers must have been removed."""
        with contextlib.suppress(NotFound):
            self._client.client.api.remove_volume(self.name, force=True)


def packed(work: str, trees: Iterable[tuple[str, Path, Iterable[Path]]]) -> bytes:
    """An archive of an engine's directory. ``trees``: name of a directory in it, folder of this machine, and files to copy from there."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        archive.addfile(_folder(work))
        for name, folder, wanted in trees:
            made: set[str] = set()
            for file in sorted(wanted):
                inside = f"{work}/{name}/{file.relative_to(folder).as_posix()}"
                parents = [str(parent) for parent in reversed(Path(inside).parents) if len(parent.parts) > 1]
                for parent in (parent for parent in parents if parent not in made):
                    archive.addfile(_folder(parent))
                made.update(parents)
                entry, content = tarfile.TarInfo(inside), file.read_bytes()
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
    return into.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, _ANYBODY
    return entry


class _Stream(io.RawIOBase):
    """The chunks of a response, read as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        while (size < 0 or len(self._left) < size) and (chunk := next(self._chunks, None)) is not None:
            self._left += chunk
        cut = len(self._left) if size < 0 else size
        given, self._left = self._left[:cut], self._left[cut:]
        return given


class UnusableImage(HarnessError):
    """The driver cannot run in the image."""

    def __init__(self, image: Image, target: Target, why: str) -> None:
        super().__init__(f"The image {image.reference} cannot run Spark {target.version}: {why}")


@dataclass(eq=False)
class ContainerRuntime:
    """Starts engines in containers. Raises ``NoDaemon`` if no container engine is reachable."""

    images: Images
    confinement: Confinement
    _: KW_ONLY
    keep: Path | None = None
    """A folder for a copy of the working files when the runtime is closed."""
    plain: bool = False
    """As in ``EngineSettings``, and so is ``own_code``."""
    own_code: OwnCode | None = None

    name = "container"

    def __post_init__(self) -> None:
        self._client = connect()
        self._missing_limits = missing_limits(self._client)
        self._unreported = [limit for limit in self._missing_limits if limit != "swap"]
        self._owner = Owner.new()
        self._lock = threading.Lock()
        self._volume: Volume | None = None
        self._accounts: dict[str, str] = {}
        self._numbers = count(1)
        self._copied_through: Image | None = None

    def unsupported(self, case: Case, _target: Target) -> str | None:
        obstacles = (
            (case.jars, "its code is in a jar, and containers have jars of their own"),
            (case.calls_main, "a debugger holds its main method, which no engine in a container has"),
            (case.table_formats, "its rows are in a table, and a container has no package of its format"),
            (case.topics, "its rows come from Kafka, and a container has no network to reach a broker"),
        )
        return next((f"{why}; run it without --runtime container" for applies, why in obstacles if applies), None)

    def fingerprint(self, target: Target) -> str | None:
        image = self.images.available(target, self._client)
        return json.dumps([self.name, image.id, self._settings(target)]) if image else None

    def start(self, target: Target, *, on_progress: ProgressCallback, needs: EngineNeeds = NOTHING_ELSE) -> Engine:  # noqa: ARG002
        image = self.images.get(target, self._client, on_progress)
        account, volume = self._account(image, target), self._shared_volume()
        on_progress(f"starting in {image.reference}")
        self._report_missing_limits(on_progress)
        work = f"{target.key}-{next(self._numbers)}"
        container = self._create(image, target, account, volume, f"{WORK}/{work}")
        try:
            volume.put(container, self._files(work))
            self._copied_through = image
            transport = AttachedTransport(container, memory=self.confinement.memory)
        except BaseException:
            daemon.remove_container(self._client.client.api, container.id)
            raise
        try:
            transport.start()
        except BaseException as error:
            transport.close()
            if isinstance(error, APIError):
                raise _not_started(image, target, error) from error
            raise
        engine = self._engine(transport, image, target, f"{WORK}/{work}")
        spark, release = engine.identity.spark, str(target.version)
        if spark != release and not spark.startswith((f"{release}-", f"{release}.")):  # with a vendor's suffix
            engine.close()
            why = f"it contains Spark {spark}. Choose another: --image {release}=registry/spark:tag"
            raise UnusableImage(image, target, why)
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
            if self.keep is not None and self._copied_through is not None:
                through = self._bare(self._copied_through, volume)
                try:
                    volume.fetch(through, self.keep)
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
                code=self._copies(work) if self.own_code is not None else None,
                start_timeout=program.START_SECONDS,
            )
        except EngineDied as error:
            reason = error.reason if isinstance(error, EngineNotStarted) else None
            if reason is FailureReason.PYSPARK_MISSING:
                raise UnusableImage(image, target, "its python3 finds no pyspark.") from error
            # An interpreter that cannot parse or import the driver ends before it can send a message of ours.
            rejected = "No module named" in error.log or "SyntaxError" in error.log
            if reason is FailureReason.PYTHON_UNSUPPORTED or rejected:
                raise UnusableImage(image, target, f"its python3 cannot run the driver.\n{error}") from error
            raise

    def _report_missing_limits(self, on_progress: ProgressCallback) -> None:
        with self._lock:
            missing, self._unreported = self._unreported, []
        if missing:
            on_progress(f"this container engine cannot limit {' and '.join(missing)}")

    def _shared_volume(self) -> Volume:
        with self._lock:
            if self._volume is None:
                self._volume = Volume(self._client, self._owner, self.confinement.volume)
            return self._volume

    def _create(self, image: Image, target: Target, account: str, volume: Volume, work: str) -> Any:
        """The container, not started yet: its output is not read before it is attached."""
        settings = self._settings(target) | worker_settings(self._copies(work))
        try:
            return self._client.create(
                image.reference,
                command=["-m", "driver", "--shared", work, *(f"{key}={value}" for key, value in settings.items())],
                labels=self._owner.labels,
                entrypoint=["python3"],
                working_dir=f"{work}/engine",
                user=account,
                volumes=volume.mounts,
                stdin_open=True,
                log_config=LogConfig(type="none"),
                **self.confinement.arguments(self._missing_limits),
            )
        except (APIError, NotFound) as error:
            raise DaemonRefused(f"a container of {image.reference}", error) from error

    def _settings(self, target: Target) -> dict[str, str]:
        tuned = {} if self.plain else tuning(target.version, own_jars=self.own_code is not None)
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

    def _account(self, image: Image, target: Target) -> str:
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
            trees = [("engine", driver.parent, tuple(driver.rglob("*.py")))]
            return packed(work, [*trees, *(self.own_code.files() if self.own_code is not None else ())])

    def _copies(self, work: str) -> tuple[str, ...]:
        """Where the user's code is in the container."""
        return tuple(f"{work}/{name}" for name, _, _ in self.own_code.files()) if self.own_code is not None else ()


def _not_started(image: Image, target: Target, error: APIError) -> HarnessError:
    # The daemon reports a missing program only in the text of the container runtime's error.
    why = explained(error)
    missing = any(text in why for text in ("executable file not found", "no such file or directory"))
    if missing and "python3" in why:
        return UnusableImage(image, target, "it has no python3.")
    return DaemonRefused(f"to start a container of {image.reference}", error)
