"""A class archive of an environment: what an engine loaded, for later JVMs to map instead of reading and verifying it again.

An engine writes it when it ends: once, because that takes about as long as its start and first case, and not the first engine of an
environment, because many are used once. JVMs ignore an archive of another Java or other jars.
Source: https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

import hashlib
import json
import os
import stat
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from filelock import FileLock, Timeout

from conformance.core.child_process import OUTSIDE, run
from harness.environments.environment import Environment
from harness.environments.java import OPTION_VARIABLES, major

_WRITTEN_AT_EXIT_SINCE = 13
"""The first Java with ``-XX:ArchiveClassesAtExit``. Source: JEP 350."""
_CLASS_PATH = ("spark.driver.extraClassPath", "spark.conformance.firstJars")
"""The settings that say what the class path begins with."""


@dataclass(frozen=True)
class ClassArchive:
    """The archive of an environment with one Java; it may not exist yet."""

    directory: Path
    key: str
    """Identifies the Java, its options and class path: archives of others are of no use to it."""

    @classmethod
    def of(
        cls, environment: Environment, settings: Mapping[str, str], environ: Mapping[str, str] = os.environ
    ) -> Self | None:
        """The archive of engines with these settings; None for the installed target, whose directories are not ours, and an old Java."""
        if environment.root is None or major(environment.java_version) < _WRITTEN_AT_EXIT_SINCE:
            return None
        try:
            # A JVM compares them too: the same version may have been built or installed again.
            modules = (environment.java_home / "lib" / "modules").stat()
        except OSError:
            return None
        options = {name: environ[name] for name in OPTION_VARIABLES if environ.get(name)}
        build = [str(environment.java_home), environment.java_version, modules.st_size, modules.st_mtime_ns]
        class_path = [settings.get(name) for name in _CLASS_PATH]
        digest = hashlib.sha256(json.dumps([build, options, class_path], sort_keys=True).encode()).hexdigest()
        return cls(environment.root / "class-archives", digest[:12])

    def file(self) -> Path | None:
        """The archive; None if there is none, or if every user of the machine may have put it there: a JVM runs what it holds.

        A damaged one is removed: a JVM that maps half of a file crashes.
        """
        if _all_may_write(self.directory):
            return None
        for archive in sorted(self.directory.glob(f"{self.key}-*.jsa")):
            with suppress(OSError):  # another process has replaced it
                if archive.name == self.name_of(archive) and not _all_may_write(archive):
                    return archive
                archive.unlink()
        return None

    def record(self) -> "ArchiveRecording | None":
        """Let an engine write the archive.

        None for the first engine of the environment, while another one is at it, and if ``file`` would not give what the directory holds.
        """
        try:
            if not self.directory.exists():
                self.directory.mkdir(0o755)  # a directory that everyone may write would not be used
                return None
            if _all_may_write(self.directory):
                return None
            lock = FileLock(self.directory / "recording.lock")
            lock.acquire(timeout=0)
        except (OSError, Timeout):
            return None
        for leftover in self.directory.glob("*.partial"):
            leftover.unlink(missing_ok=True)
        return ArchiveRecording(self, self.directory / f"{self.key}.partial", lock)

    def name_of(self, file: Path) -> str:
        """The name of an archive with the content of the file: it holds a checksum, so that one rename publishes both."""
        checksum = 0
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                checksum = zlib.crc32(chunk, checksum)
        return f"{self.key}-{checksum:08x}.jsa"


def _all_may_write(path: Path) -> bool:
    """Whether every user of the machine may write a file or a directory; not if there is none."""
    try:
        return bool(path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


@dataclass(frozen=True, eq=False)
class ArchiveRecording:
    """The right of one engine to write the archive."""

    archive: ClassArchive
    partial: Path
    """Where the engine's JVM writes when it exits."""
    lock: FileLock

    def keep(self) -> None:
        """Its JVM has exited: put what it wrote in place, if anything. It replaces the archives of other Javas."""
        try:
            with suppress(OSError):  # the JVM could not write it, or the disk is full: the next run tries again
                kept = self.partial.replace(self.partial.with_name(self.archive.name_of(self.partial)))
                for other in set(kept.parent.glob("*.jsa")) - {kept}:
                    other.unlink(missing_ok=True)
        finally:
            self.discard()

    def discard(self) -> None:
        """Let another engine write it."""
        self.partial.unlink(missing_ok=True)
        self.lock.release()


def option(name: Literal["SharedArchiveFile", "ArchiveClassesAtExit"], file: Path) -> str:
    """The JVM option that uses an archive, if it suits the JVM, or that writes one at exit."""
    # As Spark's launcher reads it: org.apache.spark.launcher.CommandBuilderUtils.parseOptionString
    quoted = str(file).replace("\\", "\\\\").replace('"', '\\"')
    return f'"-XX:{name}={quoted}"'


_NEVER_IMPORTED = r"[/\\](.*[/\\])?(tests|examples|pyspark[/\\](pandas|ml|mllib))[/\\]"
"""Below the packages: a regular expression."""
_PROGRAM = """\
import compileall, re, sys, sysconfig
root = sysconfig.get_paths()["purelib"]
compileall.compile_dir(root, quiet=2, workers=0, rx=re.compile(re.escape(root) + sys.argv[1]))
"""


def compile_imported(python: Path) -> str | None:
    """Compile what engines import, in all cores. Other modules work too; they are compiled each time they are imported.

    Engines do not write bytecode, and importing pandas and pyspark takes a Python worker 4 s from source and 1 s from bytecode, of the
    10 s that Spark waits for it. Files that are not valid in this Python are skipped. Returns why it failed, None if it did not.
    """
    command = [str(python), "-I", "-c", _PROGRAM, _NEVER_IMPORTED]
    ended = run(command, cwd=OUTSIDE, environ=os.environ)
    return (ended.stderr.strip().splitlines() or ["no message"])[-1] if ended.returncode else None
