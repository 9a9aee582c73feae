"""Golden output: what the commands print and write for fixed input, so that two revisions can be compared file by file.

``python -m tools.golden FOLDER`` writes the golden output of the checked-out revision. Before a change that must not alter
behaviour, write it once; after the change, write it again and run ``diff -r``. Each difference is either intended, and named in
the message of the commit, or a defect. No engine runs: the input is the published results, the suite and the checkpoints of the
tests.

``--part NAME`` writes only some parts; ``--help`` lists them.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.cli.main import main as conformance
from conformance.suite import discovery

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "reports" / "baselines" / "lines.jsonl.xz"
CHECKPOINTS = ROOT / "tests" / "unit" / "conformance" / "checkpoints" / "data"
LINES = ("3.0.3", "3.1.3", "3.2.4", "3.3.4", "3.4.4", "3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
EXPLAINED = ("3.0.3", "3.3.4", "3.5.9", "4.3.0")
"""The versions of which the text of every explanation is written; the JSON is written of all lines."""


def printed(*arguments: str) -> str:
    """What a command prints, on both streams, and its exit code."""
    out, code = io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(out):
        try:
            conformance(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return f"{out.getvalue()}exit code {code}\n"


def report(folder: Path) -> None:
    """Every page of the published results, and the files about every upgrade."""
    _keep(folder / "report.txt", _without(folder, printed("report", "-o", str(folder / "pages"))))


def gate(folder: Path) -> None:
    """The gate between neighbouring lines and over the usual jumps, as text and JSON, for all queries and for two kinds."""
    for before, after in (*pairwise(LINES), ("3.5.9", "4.3.0"), ("4.3.0", "3.5.9")):
        _keep(folder / f"{before}-{after}.json", printed("gate", "--from", before, "--to", after, "--json"))
    for options in ((), ("--uses", "outer-join,deduplication"), ("--uses", "sql"), ("--fail-on", "guaranteed")):
        _keep(folder / f"text {' '.join(options)}", printed("gate", "--from", "3.5.9", "--to", "4.3.0", *options))


def exports(folder: Path) -> None:
    """Each format of ``export`` of the published results."""
    for format in ("junit", "json"):
        _keep(folder / format, printed("case", "export", format, str(PUBLISHED)))
    versions = ("--from", "3.5.9", "--to", "4.3.0")
    _keep(folder / "summary", printed("case", "export", "summary", str(PUBLISHED), *versions))


def specification(folder: Path) -> None:
    _keep(
        folder / "specification.txt",
        _without(folder, printed("maintain", "specification", "-o", str(folder / "pages"))),
    )


def validate(folder: Path) -> None:
    """What ``validate`` says of the suite, of its coverage, and of the model's agreement with it."""
    for name, options in {"plain": (), "model": ("--model",), "coverage": ("--coverage",)}.items():
        _keep(folder / name, printed("case", "validate", *options))


def predictions(folder: Path) -> None:
    """The model's explanation of every case: JSON on every line, text on a few, and the divergence of two versions."""
    for id in _cases():
        _keep(folder / f"{id}.json", *(printed("explain", id, "--spark", line, "--json") for line in LINES))
        _keep(folder / f"{id}.txt", *(printed("explain", id, "--spark", line) for line in EXPLAINED))


def divergences(folder: Path) -> None:
    """Where two versions diverge, of every case."""
    for id in _cases():
        _keep(folder / f"{id}.txt", printed("explain", id, "--from", "3.3.4", "--to", "4.3.0"))


def observed(folder: Path) -> None:
    """The explanation of what engines did, of every twentieth case: each reads the published results again."""
    for id in list(_cases())[::20]:
        answers = (
            ("explain", id, "--spark", "4.3.0", "--results", str(PUBLISHED), *more) for more in ((), ("--json",))
        )
        _keep(folder / f"{id}.txt", *(printed(*answer) for answer in answers))


def checkpoints(folder: Path) -> None:
    """What ``checkpoint inspect`` says of the checkpoints of the tests, and of their future on other versions."""
    for archive in sorted(CHECKPOINTS.glob("*.zip")):
        with TemporaryDirectory() as scratch, zipfile.ZipFile(archive) as files:
            files.extractall(scratch)
            for found in sorted(path.parent for path in Path(scratch).rglob("offsets")):
                options = ((), ("--json",), ("--to", "3.5.9"), ("--to", "4.3.0"), ("--to", "4.3.0", "--json"))
                texts = (printed("checkpoint", "inspect", str(found), *more).replace(scratch, "…") for more in options)
                texts = (re.sub(r", \d+ \w+ ago", ", … ago", text) for text in texts)
                name = "-".join(found.relative_to(scratch).parts) or "root"
                _keep(folder / archive.stem / f"{name}.txt", *texts)


def others(folder: Path) -> None:
    """Commands that read neither results nor checkpoints."""
    _keep(folder / "eviction.json", printed("eviction", "a > b", "--left", "a 1 hour", "--right", "b 1 day", "--json"))
    _keep(folder / "columns.txt", printed("maintain", "columns"))
    _keep(folder / "policies.txt", printed("maintain", "policies"))
    _keep(folder / "policy.txt", printed("explain", "late-drops/window-still-open", "--policy", "all"))
    _keep(folder / "schema.json", printed("case", "schema"))


PARTS: Mapping[str, Callable[[Path], None]] = {
    part.__name__: part
    for part in (
        *(report, gate, exports, specification, validate),
        *(predictions, divergences, observed, checkpoints, others),
    )
}


def _cases() -> Iterator[str]:
    yield from (case.id for case in discovery.load().cases)


def _keep(file: Path, *texts: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(texts))


def _without(folder: Path, text: str) -> str:
    return text.replace(str(folder), "…")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="an empty or a new folder")
    parser.add_argument("--part", action="append", choices=PARTS, help="repeatable; by default all parts")
    options = parser.parse_args()
    # Each command reads its case and the catalogues anew, which takes most of the time.
    discovery.find = cache(discovery.find)
    for name in options.part or PARTS:
        print(name, file=sys.stderr, flush=True)
        PARTS[name](options.folder / name)


if __name__ == "__main__":
    main()
