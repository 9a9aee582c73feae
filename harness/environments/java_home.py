"""A JAVA_HOME whose ``java`` passes over modules its JDK does not have.

Spark 4's launcher always asks for ``jdk.incubator.vector``, which only speeds up linear algebra and which JDKs packaged for
PyPI leave out; the JVM then refuses to start. The home made here starts the same JVM without that one argument.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path


def can_be_made() -> bool:
    """Whether this system starts a shell script where it expects ``bin/java``."""
    return os.name == "posix"


def make(home: Path, jdk: Path, without: Sequence[str]) -> None:
    """Make the directory ``home``, made of links into ``jdk`` but for its ``bin/java``."""
    (home / "bin").mkdir(parents=True)
    for entry in jdk.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)
    for tool in (jdk / "bin").iterdir():
        if tool.name != "java":
            (home / "bin" / tool.name).symlink_to(tool)
    java = home / "bin" / "java"
    java.write_text(_script(jdk / "bin" / "java", without), encoding="utf-8")
    java.chmod(0o755)


def _script(java: Path, without: Sequence[str]) -> str:
    unwanted = "|".join(shlex.quote(f"--add-modules={module}") for module in without)
    return f"""\
#!/bin/sh
# The JDK behind this has no {", ".join(without)}; Spark's launcher asks for it, and Spark runs without.
for argument do
  shift
  case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {shlex.quote(str(java))} "$@"
"""
