"""The folder of ``check --output``: what an earlier `check` wrote there, and what may therefore be replaced or removed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from conformance.core.errors import WrongUsage
from conformance.core.output_file import FileKind, OtherContent, any_content, write_file

PAGE, RESULTS = "verdict.html", "results.jsonl"
SUMS = "check.sha256"
"""The file with the SHA-256 of each file that `check` wrote beside it, as ``sha256sum`` prints them."""
_LINE = re.compile(r"([0-9a-f]{64})  ((?:query-\d+/)?(?:verdict\.html|results\.jsonl|[^/]+\.yaml))")


@dataclass(frozen=True)
class AnswerFolder:
    path: Path
    earlier: Mapping[str, str]
    """File of an earlier answer → its SHA-256 when it was written."""

    @classmethod
    def looked_at(cls, path: Path, job: str) -> AnswerFolder:
        """Look at every place that the answer for a job may take, and change nothing; ``job``: as the user names it.

        Raises WrongUsage: it cannot be such a folder; OtherContent: a file is not what `check` wrote there.
        """
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            what = "cannot be written to" if there.is_dir() else "is a file"
            raise WrongUsage(f"{there} {what}: give --output another folder, new or not")
        text = (path / SUMS).read_text(encoding="utf-8", errors="replace") if (path / SUMS).is_file() else ""
        folder = cls(path, {line[2]: line[1] for line in map(_LINE.fullmatch, text.splitlines()) if line})
        name = re.split(r"[/:.]", re.sub(r"\.(py|sql)$", "", job))[-1]
        cases = (f"{name}.yaml", f"*.{name}.yaml", f"query-*/{name}-*.yaml", f"query-*/*.{name}-*.yaml")
        for place in (*cases, PAGE, RESULTS, f"query-*/{PAGE}", f"query-*/{RESULTS}"):
            for file in path.glob(place):
                if file not in folder.unchanged():
                    raise OtherContent(file, "what `check` wrote there, unchanged")
        return folder

    def unchanged(self) -> Iterator[Path]:
        """Yield the files of the earlier answer that are as `check` wrote them."""
        for name, digest in self.earlier.items():
            with suppress(OSError):
                if _digest(self.path / name) == digest:
                    yield self.path / name

    def keep(self, files: Collection[Path], *, complete: bool) -> None:
        """Note what was written so far; once ``complete``, remove the rest of the earlier answer, but no file that was changed since."""
        sums = {} if complete else dict(self.earlier)
        for file in [*self.unchanged()] if complete else ():
            if file not in files:
                file.unlink()
                with suppress(OSError):  # it holds something else
                    file.parent.rmdir()
        sums |= {file.relative_to(self.path).as_posix(): _digest(file) for file in files}
        lines = (f"{digest}  {name}\n" for name, digest in sums.items())
        write_file(self.path / SUMS, "".join(lines), FileKind("checksums", any_content))


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()
