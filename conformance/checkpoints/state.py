"""The state in a checkpoint: its operators, their stores, formats, schemas and size.

``state/OPERATOR/PARTITION/[STORE/]FILE``. Source: ``StateStoreId.storeCheckpointLocation``, ``OperatorStateMetadata``,
``HDFSBackedStateStoreProvider`` and ``RocksDBFileManager`` of Spark.

Spark compares the schema that is stored beside the state with that of the query, column by column in order; names may differ. Its error
has both, and shows why it refuses the state. Source: ``StateSchemaCompatibilityChecker.schemasCompatible`` and
``DataType.equalsIgnoreNameAndCompatibleNullability``.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias
from zipfile import BadZipFile, ZipFile

from conformance.checkpoints.files import MOST_CHECKED, MOST_UNPACKED, DamagedCheckpoint, Files, MissingFile, fault
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange

_WATERMARK = "spark.watermarkDelayMs"
NEWEST_SCHEMA = 3
"""The newest format of a schema file that we know."""
JOIN = "symmetricHashJoin"
_BY_VALUE: Mapping[tuple[str, ...], str] = {("__dummy__",): "dedupe", ("expiresAtMicros",): "dedupeWithinWatermark"}
"""Columns of the value → the operator."""
_ROCKSDB_FOLDERS = frozenset({"SSTs", "logs"})
VERSION = re.compile(r"(\d+)(?:_([\w-]+))?\.(delta|snapshot|zip|changelog)")


@dataclass(frozen=True)
class StateField:
    """A column of a schema, at any depth."""

    name: str
    """``key.window.start``: the names down to it."""
    type: str
    """``long``, ``void``; ``struct``, ``array`` or ``map`` for a nested column."""
    nullable: bool
    at: tuple[int, ...] = ()
    """Its position, after that of each column that it is nested in."""
    has_watermark: bool = False
    """Whether it is the event time of a ``withWatermark``, or a window of it."""


@dataclass(frozen=True)
class StateSchema:
    """The rows of a column family."""

    format: int
    family: str
    """``default``, or the name of a state variable (``transformWithState``)."""
    key: tuple[StateField, ...]
    value: tuple[StateField, ...]

    @property
    def fields(self) -> tuple[StateField, ...]:
        return self.key + self.value


@dataclass(frozen=True)
class StateStoreFiles:
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
    """What Spark stored of the schema; nothing before 3.1."""


@dataclass(frozen=True)
class StateOperator:
    number: int
    name: str | None
    """``stateStoreSave``, ``symmetricHashJoin``, ``dedupe`` … None if neither its metadata (4.0 and newer) nor its stores tell."""
    format: int | None
    """The version of its metadata; None if there is none (before 4.0)."""
    stores: tuple[StateStoreFiles, ...]
    variables: tuple[str, ...] = ()
    """Of ``transformWithState``; ``$eventTimers_…`` and ``$procTimers_…`` are its timers."""

    @property
    def size(self) -> int:
        return sum(store.size for store in self.stores)

    @property
    def is_keyed(self) -> bool:
        """Whether the key of its state has a column, as far as it has a schema; that of a limit is of the type void."""
        return any(field.type not in ("void", "null") for schema in self.schemas for field in schema.key)

    @property
    def schemas(self) -> tuple[StateSchema, ...]:
        return tuple(schema for store in self.stores for schema in store.schemas)


def operators(files: Files) -> tuple[StateOperator, ...]:
    """The stateful operators of a checkpoint, by number; raises `DamagedCheckpoint` for metadata or a schema that Spark did not write."""
    of_operator: defaultdict[int, list[PurePosixPath]] = defaultdict(list)
    for path in files.sizes:
        if len(path.parts) > 3 and path.parts[0] == "state" and path.parts[1].isdecimal():
            of_operator[int(path.parts[1])].append(path)
    return tuple(_operator(files, number, sorted(paths)) for number, paths in sorted(of_operator.items()))


def missing_files(
    files: Files,
    version: int,
    partitions: int | None,
    written: Callable[[int], frozenset[str]],
    keyed: Container[int] = (),
) -> Iterator[MissingFile]:
    """What Spark needs to load a version of the state and cannot read: of each store in each partition the first file that is missing,
    and those that are not whole; or the folder of an operator.

    To load a version, Spark reads the newest snapshot up to it (``.snapshot``, ``.zip``) and every change after that (``.delta``,
    ``.changelog``), from version 1 on if there is no snapshot. A zip names its files in ``SSTs`` and ``logs``. Spark purges older files
    and never reads them. Source: ``loadMap``, ``cleanup`` and ``filesForVersion`` of ``HDFSBackedStateStoreProvider``; ``RocksDB.load``,
    ``RocksDBCheckpointMetadata`` and ``RocksDBFileManager.deleteOldVersions``.

    Args:
        partitions: the number of partitions of the state; None if it is not known. An operator without a key has a single partition.
            Folders of other partitions may remain from before a repartition.
        written: the unique ids that the commit log names for a version; none if its files have none. An attempt that was not committed
            leaves files with other ids.
        keyed: the operators that have a key, as the schemas of their state tell.
    """
    if version == 0:
        return
    needed_by, ids = f"the next micro-batch needs version {version} of the state", cache(written)
    kept: defaultdict[int, defaultdict[str, defaultdict[int, dict[tuple[str, int], PurePosixPath]]]]
    kept = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for path in files.sizes:
        if len(path.parts) > 2 and path.parts[0] == "state" and path.parts[1].isdecimal():
            stores = kept[int(path.parts[1])]
            if path.parts[2].isdecimal() and (file := VERSION.fullmatch(path.name)):
                of_store, at = stores[store_of(path)][int(path.parts[2])], int(file[1])
                if file[2] is None or file[2] in (ids(at) or [file[2]]):
                    of_store[file[3], at] = path
    for number in range(max(kept, default=-1) + 1):
        folder, stores = PurePosixPath("state", str(number)), kept[number]
        if not stores:
            yield MissingFile(folder, needed_by)
        all_partitions = {partition for of_partition in stores.values() for partition in of_partition}
        for name, of_partition in sorted(stores.items()):
            kinds = {kind for versions in of_partition.values() for kind, _ in versions}
            snapshot, change = ("zip", "changelog") if kinds & {"zip", "changelog"} else ("snapshot", "delta")
            for partition in (
                range(partitions or max(all_partitions) + 1) if all_partitions - {0} or number in keyed else (0,)
            ):
                there = of_partition.get(partition, {})
                base = max((at for kind, at in there if kind == snapshot and at <= version), default=0)
                # RocksDB without changelogs writes a snapshot of each version.
                only = [(snapshot, version)] if change not in kinds else []
                needed = only or [(snapshot, base)] * (base > 0) + [(change, at) for at in range(base + 1, version + 1)]
                lacks = next((each for each in needed if each not in there), None)
                if lacks is not None:
                    place = folder / str(partition) / ("" if name == "default" else name)
                    yield MissingFile(place / f"{lacks[1]}{'_*' if ids(lacks[1]) else ''}.{lacks[0]}", needed_by)
                for path in (there[each] for each in needed if each in there):
                    yield from fault(files, path, needed_by)
                    if path.suffix == ".zip":
                        yield from _missing_of_zip(files, path, needed_by)


def unchecked(files: Files) -> int:
    """How many files of the state have content that `fault` cannot check: a zip has checksums of its own."""
    return sum(
        path.parts[0] == "state"
        and path.suffix in (".delta", ".snapshot", ".changelog", ".sst")
        and (size > MOST_CHECKED or path.with_name(f".{path.name}.crc") not in files.sizes)
        for path, size in files.sizes.items()
    )


def _missing_of_zip(files: Files, path: PurePosixPath, needed_by: str) -> Iterator[MissingFile]:
    content = files.read(path)
    try:
        with ZipFile(BytesIO(content)) as zipped:
            if sum(entry.file_size for entry in zipped.infolist()) > MOST_UNPACKED:
                raise ValueError("it is too long")
            if zipped.testzip() is not None:
                raise BadZipFile("an entry does not fit its checksum")
            metadata = json.loads(zipped.read("metadata").partition(b"\n")[2])
        named = [
            (path.parent / folder / str(file[key]), int(file["sizeBytes"]))
            for kind, folder, key in (("sstFiles", "SSTs", "dfsSstFileName"), ("logFiles", "logs", "dfsLogFileName"))
            for file in metadata.get(kind) or ()
        ]
    except Exception as error:  # of a damaged zip, many kinds
        yield MissingFile(path, needed_by, f"its list of files cannot be read ({type(error).__name__})")
        return
    for file, size in named:
        yield from fault(files, file, f"{path} names it, and {needed_by}", size)


def _operator(files: Files, number: int, paths: Iterable[PurePosixPath]) -> StateOperator:
    metadata = []
    of_store: defaultdict[str, list[PurePosixPath]] = defaultdict(list)
    for path in paths:
        if path.parts[2] == "_metadata":
            metadata.append(path)
        elif path.parts[2] == "_stateSchema":
            of_store[path.parts[3]].append(path)
        elif path.parts[2].isdecimal():
            of_store[store_of(path)].append(path)
    name, format, variables = _metadata(files, metadata)
    stores = tuple(_state_store(files, store, files_of_store) for store, files_of_store in sorted(of_store.items()))
    return StateOperator(number, name or _name_by(stores), format, stores, variables)


def _name_by(stores: Iterable[StateStoreFiles]) -> str | None:
    """The operator that keeps such state, if only one does: the names of stores and of Spark's own columns."""
    for store in stores:
        if store.name.startswith(("left-", "right-")):
            return JOIN
        for schema in store.schemas:
            if (name := _BY_VALUE.get(tuple(field.name for field in schema.value))) is not None:
                return name
    return None


def store_of(path: PurePosixPath) -> str:
    """The name of the store to which a file below a partition belongs."""
    below = path.parts[3:-1]
    return below[0] if below and below[0] not in _ROCKSDB_FOLDERS and below[0] != "_metadata" else "default"


def _metadata(files: Files, paths: Iterable[PurePosixPath]) -> tuple[str | None, int | None, tuple[str, ...]]:
    """Return the name of an operator, the version of its metadata, and its variables."""
    newest = max((path for path in paths if not path.name.endswith(".crc")), key=_age, default=None)
    if newest is None:
        return None, None, ()
    version, _, text = files.read(newest).decode("utf-8", "replace").partition("\n")
    format = re.fullmatch(r"v(\d{1,9})", version.strip())
    try:
        content = json.loads(text)
        name = str(content["operatorInfo"]["operatorName"])
        properties = json.loads(content.get("operatorPropertiesJson") or "{}")
        variables = tuple(str(each["stateName"]) for each in properties.get("stateVariables", ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        format = None
    if format is None:
        raise DamagedCheckpoint(newest, "this is not the metadata of a stateful operator, or it is incomplete")
    return name, int(format[1]), variables


def _age(path: PurePosixPath) -> tuple[int, str]:
    number = re.match(r"\d+", path.name)
    return (int(number[0]) if number else -1, str(path))


def _state_store(files: Files, name: str, paths: Iterable[PurePosixPath]) -> StateStoreFiles:
    partitions, versions, schemas, providers, size = set(), set(), [], set(), 0
    for path in paths:
        size += files.sizes[path]
        if path.name.endswith(".crc"):
            continue
        if path.parts[2].isdecimal():
            partitions.add(path.parts[2])
        if path.parts[-2:] == ("_metadata", "schema") or path.parts[2] == "_stateSchema":
            schemas.append(path)
        elif version := VERSION.fullmatch(path.name):
            versions.add(int(version[1]))
            providers.add("RocksDB" if version[3] in ("zip", "changelog") else "HDFS")
    kept = (min(versions), max(versions)) if versions else None
    provider = providers.pop() if len(providers) == 1 else "unknown"
    # Partitions have the same schema; Spark writes it in partition 0, and a new one at a restart that changes it.
    newest = max(schemas, key=_age, default=None)
    read = parse_state_schema(newest, files.read(newest)) if newest is not None else ()
    return StateStoreFiles(name, len(partitions), provider, kept, size, read)


def parse_state_schema(path: PurePosixPath, content: bytes) -> tuple[StateSchema, ...]:
    """Read the schema of the rows of a store, as Spark writes it beside the state since 3.1; raises `DamagedCheckpoint` for another format.

    The file holds strings as Java's ``DataOutputStream.writeUTF`` writes them: two bytes of length, then modified UTF-8. Source:
    ``StateSchemaCompatibilityChecker`` and ``SchemaHelper`` of Spark.
    """
    try:
        return tuple(_schemas(path, _Reader(content)))
    except (struct.error, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, DamagedCheckpoint):
            raise
        raise DamagedCheckpoint(path, "this is not a state schema, or it is incomplete") from error


def _schemas(path: PurePosixPath, reader: _Reader) -> Iterator[StateSchema]:
    version = reader.text()
    if version not in {f"v{number}" for number in range(1, NEWEST_SCHEMA + 1)}:
        raise DamagedCheckpoint(
            path, f"the format of this state schema is {version!r}; known are v1 to v{NEWEST_SCHEMA}"
        )
    format = int(version[1:])
    if format == 1:
        yield StateSchema(1, "default", _fields(reader.text()), _fields(reader.text()))
        return
    for _ in range(1 if format == 2 else reader.number()):
        family = "default" if format == 2 else reader.text()
        schema = StateSchema(format, family, _fields(reader.long_text()), _fields(reader.long_text()))
        if format > 2:
            # How the key is encoded, and the schema of the user's key.
            reader.long_text()
            reader.long_text()
        yield schema


class _Reader(BytesIO):
    """Reads what Java's ``DataOutputStream`` writes."""

    def number(self) -> int:
        return int(struct.unpack(">i", self.read(4))[0])

    def text(self) -> str:
        (length,) = struct.unpack(">H", self.read(2))
        raw = self.read(length)
        if len(raw) < length:
            raise ValueError("the text is incomplete")
        # Modified UTF-8 writes NUL as two bytes, and each half of a surrogate pair as a character.
        text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def long_text(self) -> str:
        """A text in several pieces, perhaps after the id of the schema that it is, which newer releases write."""
        if bytes(self.getbuffer()[self.tell() + 6 :][:1]) != b"{":
            self.read(2)
        pieces = self.number()
        if not 0 <= pieces <= self.getbuffer().nbytes:
            raise ValueError("the number of pieces is wrong")
        return "".join(self.text() for _ in range(pieces))


def _fields(text: str) -> tuple[StateField, ...]:
    return tuple(_nested(json.loads(text)))


def _nested(schema: Mapping[str, Any], above: tuple[str, ...] = (), at: tuple[int, ...] = ()) -> Iterator[StateField]:
    for place, field in enumerate(schema["fields"]):
        names, type_ = (*above, str(field["name"])), field["type"]
        nested = isinstance(type_, dict)
        shown, timed = str(type_["type"]) if nested else str(type_), _WATERMARK in (field.get("metadata") or {})
        yield StateField(".".join(names), shown, bool(field["nullable"]), (*at, place), timed)
        if nested and type_["type"] == "struct":
            yield from _nested(type_, names, (*at, place))


DifferenceKind: TypeAlias = Literal["type", "nullability", "number of columns"]
SchemaPart: TypeAlias = Literal["key", "value"]

_STORED = r"Existing {0}[_ ]schema(?:=|: )"
_WANTED = r"(?:new {0}_schema=|Provided {0} schema: )"
_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "null": "void"}
_SIMPLE = re.compile(r"(\w+?)(Type|UDT)\$?(\([\w, ]*\))?(?=[,)])")
_NESTED = re.compile(r"(Struct|Array|Map)Type\(")
_FIELD = re.compile(
    r"StructField\((.*?),(?=(?:Struct|Array|Map)Type\(|\w+(?:Type|UDT)\$?(?:\([\w, ]*\))?,(?:true|false)\))", re.DOTALL
)
_NULLABLE = re.compile(r",(true|false)\)")


@dataclass(frozen=True)
class StateDifference:
    """A column of the state that the query cannot read."""

    operator: str
    """``aggregation``, ``symmetricHashJoin``, ``dedupe`` …: the columns that Spark itself adds tell which; empty if they do not."""
    part: SchemaPart
    column: str
    """``window.start``: the names down to it, as the checkpoint has them; empty if the number of columns differs at the top."""
    kind: DifferenceKind
    stored: str
    """What the checkpoint has: ``double``, ``NOT NULL``, ``3 columns``."""
    wanted: str
    """What the query wants in its place."""

    def __str__(self) -> str:
        """``state of the aggregation, column sum: double in the checkpoint, bigint wanted``."""
        where = f"column {self.column}" if self.column else f"its {self.part}"
        operator = f"state of {_TITLES.get(self.operator, self.operator)}" if self.operator else "state"
        return f"{operator}, {where}: {self.stored} in the checkpoint, {self.wanted} wanted"


_TITLES = {
    "aggregation": "the aggregation",
    JOIN: "the join",
    "dedupe": "the deduplication",
    "groups": "the state function",
}


def state_differences(message: str) -> tuple[StateDifference, ...]:
    """The columns for which Spark refuses a checkpoint, from the message of its error; none if it does not hold two schemas that differ.

    A difference of nullability counts only where nothing worse differs; where the checkpoint has NOT NULL, that is what Spark minds.
    """
    parts: tuple[SchemaPart, ...] = ("key", "value")
    schemas = {
        part: (stored, wanted)
        for part in parts
        if (stored := _schema(message, _STORED.format(part))) and (wanted := _schema(message, _WANTED.format(part)))
    }
    stored_columns = [column.name for stored, _ in schemas.values() for column in stored]
    operator = _operator_of(stored_columns, has_value="value" in schemas)
    differences = [
        StateDifference(operator, part, ".".join(names), kind, a, b)
        for part, pair in schemas.items()
        for names, kind, a, b in _compared(*pair, ())
    ]
    severe = [difference for difference in differences if difference.kind != "nullability"]
    not_null = [difference for difference in differences if difference.stored == "NOT NULL"]
    return tuple(severe or not_null or differences)


def state_workarounds(
    differences: Iterable[StateDifference], before: SparkVersion, after: SparkVersion
) -> Iterator[tuple[str, str]]:
    """The settings that may help with such differences, key and value; whether they do is to be seen."""
    kinds = {difference.kind for difference in differences}
    for entry in read_data("conformance.checkpoints", "workarounds.yaml"):
        concerned = before in VersionRange.parse(entry["from"]) and after in VersionRange.parse(entry["to"])
        if concerned and not kinds.isdisjoint(entry["kinds"]):
            yield entry["key"], entry["value"]


def right_rows_prove(key: str, differences: Iterable[StateDifference]) -> bool:
    """Whether right rows after such a difference prove a setting, or Spark reads bytes of one type as another with it."""
    (entry,) = (entry for entry in read_data("conformance.checkpoints", "workarounds.yaml") if entry["key"] == key)
    return all(difference.kind in entry["proves"] for difference in differences)


@dataclass(frozen=True)
class _Column:
    """A column; ``parts`` are the fields of a struct, the element of an array, key and value of a map."""

    name: str
    type: str
    nullable: bool
    parts: tuple[_Column, ...] = ()


def _operator_of(columns: Sequence[str], *, has_value: bool) -> str:
    """Whose state has these columns; sources: ``SymmetricHashJoinStateManager``, ``StreamingDeduplicateExec``,
    ``FlatMapGroupsWithStateExecHelper``. An aggregation adds none of its own, and neither does the key of a deduplication."""
    if "matched" in columns[-1:] or "field0" in columns[:1]:
        return JOIN
    if columns[-1:] in (["__dummy__"], ["expiresAtMicros"]):
        return "dedupe"
    if {"groupState", "timeoutTimestamp"}.intersection(columns):
        return "groups"
    return "aggregation" if has_value else ""


def _compared(
    stored: Sequence[_Column], wanted: Sequence[_Column], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DifferenceKind, str, str]]:
    if len(stored) != len(wanted):
        yield above, "number of columns", _counted(stored), _counted(wanted)
        return
    for a, b in zip(stored, wanted, strict=True):
        names = (*above, a.name)
        if a.type != b.type:
            yield names, "type", a.type, b.type
        elif a.nullable != b.nullable:
            yield names, "nullability", *(("nullable", "NOT NULL") if a.nullable else ("NOT NULL", "nullable"))
        if a.type == b.type:
            yield from _compared(a.parts, b.parts, names)


def _counted(columns: Sequence[_Column]) -> str:
    return f"{len(columns)} ({', '.join(f'{column.name} {column.type}' for column in columns)})"


def _schema(message: str, before: str) -> tuple[_Column, ...] | None:
    """The columns of the schema that follows a text; None if there is none, or it is not a whole one."""
    place = re.search(before, message)
    if place is None:
        return None
    try:
        column, _ = _type(message, place.end(), "", nullable=True)
    except ValueError:
        return None
    return column.parts if column.type == "struct" else None


def _type(text: str, at: int, name: str, *, nullable: bool) -> tuple[_Column, int]:
    """A type as Scala prints it, ``StructType(StructField(a,LongType,true))``, and where it ends; raises `ValueError` without one."""
    nested = _NESTED.match(text, at)
    if nested is None:
        simple = _matched(_SIMPLE, text, at)
        sql = simple[1].lower() if simple[2] == "Type" else simple[1]
        return _Column(name, _SQL_NAMES.get(sql, sql) + (simple[3] or ""), nullable), simple.end()
    at, parts = nested.end(), []
    if nested[1] == "Struct":
        while not text.startswith(")", at):
            field, at = _field(text, at + text.startswith(",", at))
            parts.append(field)
        return _Column(name, "struct", nullable, tuple(parts)), at + 1
    for part in ("element",) if nested[1] == "Array" else ("key", "value"):
        column, at = _type(text, at + text.startswith(",", at), part, nullable=False)
        parts.append(column)
    end = _matched(_NULLABLE, text, at)
    parts[-1] = replace(parts[-1], nullable=end[1] == "true")
    return _Column(name, nested[1].lower(), nullable, tuple(parts)), end.end()


def _field(text: str, at: int) -> tuple[_Column, int]:
    """``StructField(name,type,nullable)``, and where it ends; the name may hold commas and parentheses. Raises `ValueError` without one."""
    field = _matched(_FIELD, text, at)
    column, at = _type(text, field.end(), field[1], nullable=True)
    end = _matched(_NULLABLE, text, at)
    return replace(column, nullable=end[1] == "true"), end.end()


def _matched(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    if (match := pattern.match(text, at)) is None:
        raise ValueError(text[at : at + 40])
    return match
