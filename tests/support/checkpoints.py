"""Checkpoints for tests: those that real Sparks wrote (`tools.checkpoints`), and small ones written here."""

import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

QUERY_ID = "5a1d0000-0000-0000-0000-000000000000"
DATA = Path(__file__).parents[1] / "unit" / "conformance" / "checkpoints" / "data"


def written_by(version: str, name: str, into: Path) -> Path:
    """Unpack the checkpoint of a query that a release wrote: ``outer_join-rocksdb``."""
    with zipfile.ZipFile(DATA / f"{version}.zip") as zipped:
        zipped.extractall(into, [entry for entry in zipped.namelist() if entry.startswith(f"{name}/")])
    return into / name


def releases_with(name: str) -> list[str]:
    """The releases that wrote a checkpoint of this name."""
    return [
        path.stem
        for path in sorted(DATA.glob("*.zip"))
        if any(entry.startswith(f"{name}/") for entry in zipfile.ZipFile(path).namelist())
    ]


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def small(root: Path, *, committed: bool = True, watermark_ms: int = 0, **files: str | bytes) -> Path:
    """A checkpoint with one micro-batch and one source of files; ``files`` are added, with ``__`` for ``/``."""
    metadata = {
        "batchWatermarkMs": 0,
        "batchTimestampMs": 1_700_000_000_000,
        "conf": {"spark.sql.shuffle.partitions": "2", "spark.sql.streaming.join.stateFormatVersion": "2"},
    }
    content: dict[str, str | bytes] = {
        "metadata": json.dumps({"id": QUERY_ID}),
        "offsets/0": f'v1\n{json.dumps(metadata)}\n{{"logOffset":0}}',
        "sources/0/0": 'v1\n{"path":"file:///in/0.json","timestamp":1,"batchId":0}',
    }
    if committed:
        content["commits/0"] = f'v1\n{{"nextBatchWatermarkMs":{watermark_ms}}}'
    return write(root, content | {name.replace("__", "/"): text for name, text in files.items()})


def schema(*fields: tuple[str, Any, bool]) -> str:
    """A schema as Spark writes it: (name, type, nullable)."""
    listed = [{"name": name, "type": type_, "nullable": nullable, "metadata": {}} for name, type_, nullable in fields]
    return json.dumps({"type": "struct", "fields": listed})


def utf(text: str) -> bytes:
    """As Java's ``writeUTF`` writes a text without NUL and without characters beyond U+FFFF."""
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def schema_v2(key: str, value: str) -> bytes:
    """A state schema file of format v2."""
    return utf("v2") + b"".join(struct.pack(">i", 1) + utf(text) for text in (key, value))


def unsafe_row(*columns: int | str | tuple[Any, ...] | None) -> bytes:
    """A row as Spark's ``UnsafeRow`` holds it: bits for nulls, 8 bytes for each column, then texts and nested rows (tuples)."""
    words = (len(columns) + 63) // 64
    nulls, fixed, rest = bytearray(words * 8), b"", b""
    for at, column in enumerate(columns):
        if column is None or isinstance(column, int):
            nulls[at >> 3] |= (column is None) << (at & 7)
            fixed += struct.pack("<q", column or 0)
        else:
            content = unsafe_row(*column) if isinstance(column, tuple) else column.encode()
            fixed += struct.pack("<II", len(content), (words + len(columns)) * 8 + len(rest))
            rest += content + bytes(-len(content) % 8)
    return bytes(nulls) + fixed + rest


def state_file(*changes: tuple[bytes, bytes | None], end: bytes = struct.pack(">i", -1)) -> bytes:
    """A delta or snapshot: each key with its value, or None if it is removed, in a block that is not compressed."""
    content = b"".join(
        struct.pack(">i", len(key))
        + key
        + (struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value)
        for key, value in changes
    )
    return b"".join(
        b"LZ4Block" + struct.pack("<Biii", 0x15, len(block), len(block), 0) + block for block in (content + end, b"")
    )
