"""What the published report weighs: ``python benchmarks/report_weight.py [FOLDER]``; without the folder of a report it is written first.

A line for each kind of page: how many there are, their megabytes, and how many of these are text that a reader can read. The rest is
tags, links and pictures. At the end the same of all files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

_MB = 1e6


class _Text(HTMLParser):
    """Adds up the bytes of the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def handle_data(self, data: str) -> None:
        self.bytes += len(data.encode())


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else name)
        if len(sys.argv) == 1:
            command = [sys.executable, "-m", "conformance.cli.main", "report", "-o", str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        kinds: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                kinds[_kind(path.relative_to(folder))].append((path.stat().st_size, _text_of(path)))
    for kind, files in sorted(kinds.items(), key=lambda item: -sum(size for size, _ in item[1])):
        print(_line(kind, files))
    print(_line("all files", [file for files in kinds.values() for file in files]))


def _kind(path: Path) -> str:
    if path.suffix != ".html":
        return f"{path.suffix[1:]} files"
    return f"pages in {path.parts[0]}" if len(path.parts) > 1 else "pages at the top"


def _text_of(path: Path) -> int:
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".html":
        return len(content.encode())
    text = _Text()
    text.feed(content)
    return text.bytes


def _line(kind: str, files: list[tuple[int, int]]) -> str:
    size, text = (sum(column) / _MB for column in zip(*files, strict=True))
    return f"{len(files):,} {kind}: {size:.1f} MB, {text:.1f} of them text"


if __name__ == "__main__":
    main()
