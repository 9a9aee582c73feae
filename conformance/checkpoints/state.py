"""The state in a checkpoint: its operators, their stores, formats, schemas and size.

``state/OPERATOR/PARTITION/[STORE/]FILE``. Source: ``StateStoreId.storeCheckpointLocation``, ``OperatorStateMetadata``,
``HDFSBackedStateStoreProvider`` and ``RocksDBFileManager`` of Spark.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from conformance.checkpoints import state_schema
from conformance.checkpoints.errors import DamagedCheckpoint
from conformance.checkpoints.files import Files
from conformance.checkpoints.state_schema import StateSchema

JOIN = "symmetricHashJoin"
_BY_VALUE: Mapping[tuple[str, ...], str] = {("__dummy__",): "dedupe", ("expiresAtMicros",): "dedupeWithinWatermark"}
"""Columns of the value → the operator."""
_ROCKSDB_FOLDERS = frozenset({"SSTs", "logs"})
_VERSION = re.compile(r"(\d+)(?:_[\w-]+)?\.(delta|snapshot|zip|changelog)")


@dataclass(frozen=True)
class StateStore:
    """One kind of state of an operator, in all partitions."""

    name: str
    """``default``, or ``left-keyToNumValues`` and its like for a join."""
    partitions: int
    provider: str
    """``RocksDB``, ``HDFS``, or ``unknown`` if it has stored nothing."""
    versions: tuple[int, int] | None
    """The oldest and the newest version that is kept; version n is the state after micro-batch n - 1. None if there is none."""
    size: int
    """Bytes of all its files."""
    schemas: tuple[StateSchema, ...]
    """Empty if Spark stored none (before 3.1)."""


@dataclass(frozen=True)
class StateOperator:
    """A stateful operator of the query."""

    number: int
    name: str | None
    """``stateStoreSave``, ``symmetricHashJoin``, ``dedupe`` … None if neither its metadata (4.0 and newer) nor its stores tell."""
    format: int | None
    """The version of its metadata; None if there is none (before 4.0)."""
    stores: tuple[StateStore, ...]

    @property
    def size(self) -> int:
        return sum(store.size for store in self.stores)

    @property
    def schemas(self) -> tuple[StateSchema, ...]:
        return tuple(schema for store in self.stores for schema in store.schemas)


def operators(files: Files) -> tuple[StateOperator, ...]:
    """The stateful operators of a checkpoint, by number.

    Raises:
        DamagedCheckpoint: metadata or a schema does not have the format that Spark writes.
    """
    of_operator: defaultdict[int, list[PurePosixPath]] = defaultdict(list)
    for path in files.sizes:
        if len(path.parts) > 3 and path.parts[0] == "state" and path.parts[1].isdecimal():
            of_operator[int(path.parts[1])].append(path)
    return tuple(_operator(files, number, sorted(paths)) for number, paths in sorted(of_operator.items()))


def _operator(files: Files, number: int, paths: Iterable[PurePosixPath]) -> StateOperator:
    metadata: list[PurePosixPath] = []
    of_store: defaultdict[str, list[PurePosixPath]] = defaultdict(list)
    for path in paths:
        if path.parts[2] == "_metadata":
            metadata.append(path)
        elif path.parts[2] == "_stateSchema":
            of_store[path.parts[3]].append(path)
        elif path.parts[2].isdecimal():
            of_store[_store(path)].append(path)
    name, format = _metadata(files, metadata)
    stores = tuple(_state_store(files, store, found) for store, found in sorted(of_store.items()))
    return StateOperator(number, name or _name_by(stores), format, stores)


def _name_by(stores: Iterable[StateStore]) -> str | None:
    """The operator that keeps such state, if only one does: the names of stores and of Spark's own columns."""
    for store in stores:
        if store.name.startswith(("left-", "right-")):
            return JOIN
        for schema in store.schemas:
            found = _BY_VALUE.get(tuple(field.name for field in schema.value))
            if found is not None:
                return found
    return None


def _store(path: PurePosixPath) -> str:
    """The name of the store that a file below a partition belongs to."""
    below = path.parts[3:-1]
    return below[0] if below and below[0] not in _ROCKSDB_FOLDERS and below[0] != "_metadata" else "default"


def _metadata(files: Files, paths: Iterable[PurePosixPath]) -> tuple[str | None, int | None]:
    """The operator's name, and the version of its metadata."""
    newest = max((path for path in paths if not path.name.endswith(".crc")), key=_age, default=None)
    if newest is None:
        return None, None
    version, _, text = files.read(newest).decode("utf-8", "replace").partition("\n")
    found = re.fullmatch(r"v(\d{1,9})", version.strip())
    try:
        said = json.loads(text)
        name = str(said["operatorInfo"]["operatorName"])
    except (ValueError, KeyError, TypeError, RecursionError):
        found = None
    if found is None:
        raise DamagedCheckpoint(newest, "this is not the metadata of a stateful operator, or it is incomplete")
    return name, int(found[1])


def _age(path: PurePosixPath) -> tuple[int, str]:
    number = re.match(r"\d+", path.name)
    return (int(number[0]) if number else -1, str(path))


def _state_store(files: Files, name: str, paths: Iterable[PurePosixPath]) -> StateStore:
    partitions, versions, schemas, providers, size = set(), set(), [], set(), 0
    for path in paths:
        size += files.sizes[path]
        if path.name.endswith(".crc"):
            continue
        if path.parts[2].isdecimal():
            partitions.add(path.parts[2])
        if path.parts[-2:] == ("_metadata", "schema") or path.parts[2] == "_stateSchema":
            schemas.append(path)
        elif found := _VERSION.fullmatch(path.name):
            versions.add(int(found[1]))
            providers.add("RocksDB" if found[2] in ("zip", "changelog") else "HDFS")
    kept = (min(versions), max(versions)) if versions else None
    provider = providers.pop() if len(providers) == 1 else "unknown"
    # Partitions have the same schema; Spark writes it in partition 0, and a new one at a restart that changes it.
    newest = max(schemas, key=_age, default=None)
    read = state_schema.parse(newest, files.read(newest)) if newest is not None else ()
    return StateStore(name, len(partitions), provider, kept, size, read)
