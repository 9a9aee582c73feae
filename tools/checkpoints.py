"""Makes the checkpoints that tests of ``conformance checkpoint`` read: queries × state stores × lines of Spark.

    python -m tools.checkpoints                      every line
    python -m tools.checkpoints 3.5.9 4.3.0          these releases
    python -m tools.checkpoints --into FOLDER 3.5.9  elsewhere
    python -m tools.checkpoints --compare [3.5.3 …]  what every release from 3.2 on, or these, write: reports/baselines/checkpoints.json

Each release makes one zip, with a folder for each checkpoint: ``outer_join-rocksdb/``. What is compared is state in HDFS-backed stores:
RocksDB names its files at random.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath

from conformance.core.versions import releases
from harness.environments import provision
from harness.targets.targets import Target, Targets
from reports.results.published import WRITTEN

QUERIES = Path(__file__).with_name("checkpoint_queries.py")
DATA = Path(__file__).parents[1] / "tests" / "unit" / "conformance" / "checkpoints" / "data"
SINCE = {
    ("session_window", "hdfs"): "3.2",
    ("within_watermark", "hdfs"): "3.5",
    ("window_aggregation", "rocksdb"): "3.2",
    ("outer_join", "rocksdb"): "3.2",
}
"""(query, state store) → the line that brought the feature."""
MADE = (
    ("window_aggregation", "hdfs"),
    ("outer_join", "hdfs"),
    ("deduplication", "hdfs"),
    ("filter_only", "hdfs"),
    *SINCE,
)


def made_on(target: Target) -> Iterator[tuple[str, str]]:
    """The checkpoints that this version can write: (query, state store)."""
    line = [*map(int, target.version.line.split("."))]
    return (made for made in MADE if line >= [*map(int, SINCE.get(made, "0.0").split("."))])


def kept(path: PurePath, content: bytes) -> bytes:
    """Return what a test needs of a file: of the state of RocksDB, which nothing reads, the size and of a zip the list of its files."""
    if path.parts[0] != "state" or {"_metadata", "_stateSchema"} & set(path.parts) or path.suffix == ".delta":
        return content
    if path.suffix != ".zip":
        return bytes(len(content))
    listed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as zipped, zipfile.ZipFile(listed, "w") as target:
        target.writestr(zipfile.ZipInfo("metadata"), zipped.read("metadata"), zipfile.ZIP_DEFLATED)
    return listed.getvalue()


def write_checkpoints(target: Target, names: Sequence[str], into: Path) -> None:
    """Run queries on one version: ``outer_join-rocksdb`` leaves its checkpoint in ``into/outer_join-rocksdb/checkpoint``."""
    environment = provision.prepare(target)
    subprocess.run(
        [str(environment.python), str(QUERIES), str(into), *names],
        env=environment.environ(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def make(target: Target, into: Path) -> Path:
    """Run the queries on one version and zip their checkpoints; return the zip."""
    file = into / f"{target.version}.zip"
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made,
    ):
        names = [f"{query}-{provider}" for query, provider in made_on(target)]
        write_checkpoints(target, names, Path(scratch))
        for name in names:
            root = Path(scratch, name, "checkpoint")
            for path in sorted(root.rglob("*")):
                if path.is_file() and not path.name.endswith(".crc"):
                    entry = zipfile.ZipInfo(f"{name}/{path.relative_to(root)}")
                    made.writestr(entry, kept(path.relative_to(root), path.read_bytes()), zipfile.ZIP_DEFLATED)
    return file


_OF_THE_RUN = re.compile(rb'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=:)1[6-9]\d{11}\b|file:[^"]*/(?=[^/"]*")')
"""Ids, times in ms, and folders."""
_SETTINGS = re.compile(rb'"conf":(\{[^}]*\})')
"""Of an entry of the offset log."""


def compared(folder: Path) -> dict[str, object]:
    """Return the digest of each checkpoint in HDFS-backed stores below the folder, and the settings that they record."""
    digests, settings = {}, set[str]()
    for root in sorted(folder.glob("*-hdfs")):
        digest = hashlib.sha256()
        for path in sorted(path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".crc")):
            content = path.read_bytes()
            if path.parent.name == "offsets":
                recorded = [json.loads(conf) for conf in _SETTINGS.findall(content)]
                settings.update(f"{key}={value}" for conf in recorded for key, value in conf.items())
                content = _SETTINGS.sub(b"", content)
            digest.update(f"{path.relative_to(root)}\0".encode() + _OF_THE_RUN.sub(b"", content) + b"\0")
        digests[root.name.removesuffix("-hdfs")] = digest.hexdigest()[:16]
    return {"digests": digests, "settings": sorted(settings)}


def compare(targets: Iterable[Target]) -> None:
    """Run the queries on each version and publish what they leave; what is known of other versions stays."""
    known = json.loads(WRITTEN.read_text()) if WRITTEN.exists() else {}
    for target in targets:
        with tempfile.TemporaryDirectory() as scratch:
            names = [f"{query}-{provider}" for query, provider in made_on(target) if provider == "hdfs"]
            write_checkpoints(target, names, Path(scratch))
            for name in names:
                shutil.move(Path(scratch, name, "checkpoint"), Path(scratch, "left", name))
            known[str(target.version)] = compared(Path(scratch, "left"))
        WRITTEN.write_text(json.dumps(known, indent=0, sort_keys=True) + "\n")
        print(target.version, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="releases; by default the newest of each line")
    parser.add_argument("--into", type=Path, default=DATA, help="folder of the zips")
    parser.add_argument("--compare", action="store_true", help="publish what the releases write")
    arguments = parser.parse_args()
    if arguments.compare:
        names = arguments.versions or [str(version) for version in releases() if version.minor > 1 or version.major > 3]
        compare(Targets.load().choose(names).targets)
        return
    arguments.into.mkdir(parents=True, exist_ok=True)
    for target in Targets.load().choose(arguments.versions or ["lines"]).targets:
        print(make(target, arguments.into))


if __name__ == "__main__":
    main()
