"""Pages of documentation as transcripts: files that they tell people to write, and commands with what they print."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^(?:<!-- (\S+) -->\n)?```(console|yaml|python|csv)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"# (\S+\.(?:ya?ml|py))\n")


@dataclass(frozen=True)
class File:
    """A block whose first line is a comment with a path, or that follows one that the page does not show."""

    path: str
    content: str


@dataclass(frozen=True)
class Command:
    """A line after ``$``."""

    line: str
    printed: tuple[str, ...]
    """Lines that stand below it; each is among those it prints."""
    exit_code: int
    """That of an ``echo $?`` below it, else 0."""


def transcript(page: Path) -> Iterator[File | Command]:
    """What the page tells people to do, in order."""
    for name, kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if name:
            yield File(name, body)
            continue
        if kind != "console":
            if path := _PATH.match(body):
                yield File(path[1], body)
            continue
        commands = [part.splitlines() for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]]
        for at, (line, *printed) in enumerate(commands):
            if line == "echo $?":
                continue
            after = commands[at + 1] if at + 1 < len(commands) else ["", ""]
            code = int(after[1]) if after[0] == "echo $?" else 0
            yield Command(line, tuple(text for text in printed if text.strip()), code)


def follow(page: Path, folder: Path) -> None:
    """Do what the page says in a folder: each command must end as the page says, and print the lines that stand below it."""
    environ = {**os.environ, "PATH": str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]}
    for act in transcript(page):
        if isinstance(act, File):
            (folder / act.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / act.path).write_text(act.content)
            continue
        done = subprocess.run(
            act.line, shell=True, cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == act.exit_code, act.line + done.stdout + done.stderr
        assert [text for text in act.printed if text not in done.stdout.splitlines()] == [], done.stdout
