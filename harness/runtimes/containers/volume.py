"""The working files of a run: one volume, at the same path in every container of the run.

A volume instead of a bind mount: it works with a daemon on another machine, and no file on this machine belongs to a container's user.
Files that are needed here are copied, and belong to the user who runs the suite.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.runtimes.containers.client import APIError, DockerClient, NotFound
from harness.runtimes.containers.confinement import WORK
from harness.runtimes.containers.daemon import DaemonRefused, Owner

_ANYBODY = 0o777
"""Containers of several images share the volume, and their users have different ids."""


class Volume:
    """A labelled volume.

    Raises:
        DaemonRefused: it cannot be made.
    """

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
        """Unpack an archive into the volume, through a container that mounts it and does not run yet.

        Raises:
            DaemonRefused: the daemon does not accept it.
        """
        try:
            container.put_archive(WORK, archive)
        except APIError as error:
            raise DaemonRefused("the driver's files", error) from error

    def fetch(self, container: Any, folder: Path) -> None:
        """Copy the content of the volume to a folder of this machine, through any container that mounts it."""
        stream, _ = container.get_archive(f"{WORK}/.")
        with tarfile.open(fileobj=_Stream(stream), mode="r|*") as archive:
            for member in archive:
                if not member.issym():  # the `data` filter rejects links out of the folder
                    archive.extract(member, folder, filter="data")

    def remove(self) -> None:
        """Remove it with its content; its containers must have been removed."""
        with contextlib.suppress(NotFound):
            self._client.client.api.remove_volume(self.name, force=True)


def packed(work: str, trees: Iterable[tuple[str, Path, Iterable[Path]]]) -> bytes:
    """An archive of an engine's directory.

    Args:
        work: the engine's directory, relative to the volume.
        trees: name of a directory in it, folder on this machine, and the files to copy from there.
    """
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        archive.addfile(_folder(work))
        for name, folder, wanted in trees:
            made: set[str] = set()
            for file in sorted(wanted):
                inside = f"{work}/{name}/{file.relative_to(folder).as_posix()}"
                parents = [str(parent) for parent in reversed(Path(inside).parents) if len(parent.parts) > 1]
                for parent in parents:
                    if parent not in made:
                        made.add(parent)
                        archive.addfile(_folder(parent))
                entry = tarfile.TarInfo(inside)
                content = file.read_bytes()
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
