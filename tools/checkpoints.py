"""Makes the checkpoints that tests of ``conformance checkpoint`` read: queries × state stores × lines of Spark.

    python -m tools.checkpoints                      every line
    python -m tools.checkpoints 3.5.9 4.3.0          these releases
    python -m tools.checkpoints --into FOLDER 3.5.9  elsewhere

Each release makes one zip, with a folder for each checkpoint: ``outer_join-rocksdb/``.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from harness.environments import provision
from harness.targets.targets import Target, Targets

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
    """What a test needs of a file: of state itself, which nothing reads, only the size; of a zip of RocksDB, the list of its files."""
    if path.parts[0] != "state" or {"_metadata", "_stateSchema"} & set(path.parts):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="releases; by default the newest of each line")
    parser.add_argument("--into", type=Path, default=DATA, help="folder of the zips")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    for target in Targets.load().choose(arguments.versions or ["lines"]).targets:
        print(make(target, arguments.into))


if __name__ == "__main__":
    main()
