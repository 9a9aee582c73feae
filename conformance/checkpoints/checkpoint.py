"""A checkpoint: where a query stands, what it reads, what it keeps, and which releases may have written it.

Its two logs have the offsets of each planned micro-batch, and the micro-batches that are committed. An entry is a file named after its
micro-batch; its first line is the version of its format. Source: ``OffsetSeqLog`` and ``CommitLog`` of Spark.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from conformance.checkpoints import state
from conformance.checkpoints.files import (
    MOST_BYTES,
    MOST_UNPACKED,
    DamagedCheckpoint,
    Files,
    MissingFile,
    NoSuchCheckpoint,
    fault,
    is_whole,
)
from conformance.checkpoints.state import StateOperator
from conformance.core.data import read_data
from conformance.core.versions import SparkVersion, VersionRange, releases

MOST_SOURCES = 10_000
_UUID = re.compile("[0-9a-fA-F]{1,16}(-[0-9a-fA-F]{1,16}){4}")
"""What Java reads as the id of a query."""
_STATE = "org.apache.spark.sql.execution.streaming.state"
_CODECS = {"lz4": "LZ4", "lzf": "LZF", "snappy": "Snappy", "zstd": "ZStd"}
CLASSES: Mapping[str, frozenset[str]] = {
    "spark.sql.streaming.stateStore.providerClass": frozenset(
        f"{_STATE}.{store}StateStoreProvider" for store in ("HDFSBacked", "RocksDB")
    ),
    "spark.sql.streaming.stateStore.compression.codec": frozenset(
        {*_CODECS, *(f"org.apache.spark.io.{codec}CompressionCodec" for codec in _CODECS.values())}
    ),
}
"""The stored settings of which Spark loads the class, and their values that are Spark's own; see ``OffsetSeqMetadata.relevantSQLConfs``."""
_VALUES: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "[1-9][0-9]{0,8}",
    "spark.sql.streaming.multipleWatermarkPolicy": "(?i:min|max)",
    "spark.sql.streaming.stateStore.encodingFormat": "(?i:unsaferow|avro)",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "[0-9]{1,9}",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "[12]",
    **{
        f"spark.sql.streaming.{operator}.stateFormatVersion": "[1-9]"
        for operator in ("aggregation", "flatMapGroupsWithState", "join")
    },
}
"""Stored settings, and their values as patterns: Spark refuses others when it sets them in the session."""
_SWITCHES = (".enabled", ".enableSourceEvolution", ".pruneFiltersCanPruneStreamingSubplan", ".useStrictDistribution")
"""The ends of stored settings that are true or false."""
NEWEST_FORMAT = 2
"""The newest format of an entry of a log that we know: that of offsets since 4.2, and of commits since 4.0."""
MOST_MISSING = 1_000
MOST_LOOKED_AT = 20
"""How many entries of the offset log are read to see whether a query keeps state."""
COMPACT_INTERVAL = 10
"""Spark's default of ``spark.sql.streaming.fileSource.log.compactInterval``; a log with a compacted entry shows its own."""
_BY_NAME = frozenset({"_metadata", "_stateSchema"})
"""Folders of the state whose files Spark reads whatever the version of the state."""
_NO_URI = re.compile(r'[\x00-\x20\x7f"<>\\^`{|}]|%(?![0-9a-fA-F]{2})')
"""What Java's ``URI`` accepts nowhere."""
SINK_LOG = "_spark_metadata"
_ENTRY = re.compile(r"[0-9]{1,18}(\.compact)?")
"""An entry of a log of files."""
NOTHING_READ = "-"
"""The offset of a source that has read nothing yet."""


@dataclass(frozen=True)
class CheckpointSource:
    """How far a source has been read."""

    name: str
    """Its position in the query, ``0``, or its own name (4.2 and newer)."""
    offset: str | None
    """JSON as the source wrote it; None if it has read nothing."""

    @property
    def kind(self) -> str:
        """What kind of source writes such offsets; ``unknown`` if several do or none is known."""
        try:
            offset = json.loads(self.offset or "")
        except (ValueError, RecursionError):
            return "unknown"
        if not isinstance(offset, dict):
            return "rate, socket or memory" if isinstance(offset, int) else "unknown"
        if set(offset) == {"logOffset"}:
            return "files"
        if {"reservoirVersion", "sourceVersion"} & set(offset):
            return "Delta"
        if offset and all(isinstance(partitions, dict) for partitions in offset.values()):
            return "Kafka"
        return "unknown"


@dataclass(frozen=True)
class OffsetEntry:
    """A planned micro-batch."""

    batch: int
    format: int
    watermark_ms: int
    """The watermark it runs with, in ms since 1970; 0 if none."""
    planned_ms: int
    """When it was planned, in ms since 1970."""
    settings: Mapping[str, str]
    """Settings that the checkpoint stores: Spark ignores other values in the session."""
    sources: tuple[CheckpointSource, ...]


@dataclass(frozen=True)
class CommitEntry:
    """A micro-batch whose rows are out and whose state is stored."""

    batch: int
    format: int
    next_watermark_ms: int
    """The watermark of the next micro-batch, in ms since 1970."""
    names_stores: bool
    """Whether it names the versions of state stores (checkpoint format 2)."""


@dataclass(frozen=True)
class Checkpoint:
    where: str
    """The path or URL of the checkpoint."""
    query_id: str | None
    """The id of the query; None if the file that holds it is missing."""
    planned: OffsetEntry | None
    """The newest micro-batch in the offset log; None if none was planned."""
    committed: CommitEntry | None
    """The newest micro-batch in the commit log; None if none was committed."""
    operators: tuple[StateOperator, ...]
    size: int
    """Bytes of all its files."""
    missing: tuple[MissingFile, ...] = ()
    """The files and folders that are missing or damaged, and without which the query fails, or reads rows again or never."""
    replayable: bool = False
    """Whether nothing would be missing if the newest micro-batch were not committed: it would run again."""
    has_entry_before: bool = False
    """Whether the offset log has an entry of the micro-batch before the newest one."""
    has_gap: bool = False
    """Whether the offset log has no entry of the micro-batch before the newest one."""
    unfit: bool = False
    """Whether an entry that Spark reads of the offset or commit log does not fit the checksum beside it."""
    unchecked: int = 0
    """How many files of the state have content that is not checked: they are large, or no checksums are beside them."""

    @property
    def partitions(self) -> int | None:
        """The number of partitions of the state by the stored settings; None if they do not tell."""
        stored = self.settings.get("spark.sql.shuffle.partitions", "")
        return int(stored) if re.fullmatch("[1-9][0-9]{0,5}", stored) else None

    @property
    def state_version(self) -> int:
        """The version of the state that the next micro-batch needs; 0 if it begins without state."""
        if self.planned is not None and self.unfinished:
            return self.planned.batch
        return self.committed.batch + 1 if self.committed else 0

    @property
    def watermark_ms(self) -> int:
        """The watermark of the next micro-batch, in ms since 1970; 0 if there is none.

        A micro-batch runs again with the watermark it was planned with. A commit may raise it; that of Spark 2.3 and older says nothing
        of it. Source: ``MicroBatchExecution.populateStartOffsets``.
        """
        committed = 0 if self.committed is None or self.unfinished else self.committed.next_watermark_ms
        return max(committed, self.planned.watermark_ms if self.planned else 0)

    @property
    def unfinished(self) -> bool:
        """Whether the newest micro-batch was planned and not committed: it runs again at the restart."""
        if self.planned is None:
            return False
        return self.committed is None or self.committed.batch < self.planned.batch

    @property
    def sources(self) -> tuple[CheckpointSource, ...]:
        return self.planned.sources if self.planned else ()

    @property
    def settings(self) -> Mapping[str, str]:
        return self.planned.settings if self.planned else {}


def read(files: Files, sink: Files | None = None) -> Checkpoint:
    """Read a checkpoint, without its state, and the log of the folder that a file ``sink`` writes; raises `NoSuchCheckpoint` if the folder
    is none, or a file cannot be read, and `DamagedCheckpoint` if a file does not have the format that Spark writes."""
    planned, committed = _batches(files, "offsets"), _batches(files, "commits")
    if not planned and PurePosixPath("metadata") not in files.sizes:
        raise NoSuchCheckpoint(
            files.where,
            "this is not the checkpoint of a streaming query: it has neither a file `metadata` nor a folder `offsets`; "
            "pass the folder that the query has as checkpointLocation",
        )
    newest = {"offsets": planned[-2:], "commits": committed[-1:]}
    read_by_spark = {PurePosixPath(log, str(batch)) for log, batches in newest.items() for batch in batches}
    checkpoint = Checkpoint(
        files.where,
        _query_id(files),
        _offsets(files, planned[-1]) if planned else None,
        _commit(files, committed[-1]) if committed else None,
        state.operators(files),
        sum(files.sizes.values()),
        has_entry_before=len(planned) > 1 and planned[-1] - 1 == planned[-2],
        has_gap=bool(planned) and planned[-1] > 0 and planned[-1] - 1 not in planned,
        unfit=not all(is_whole(files, path, size) for path, size in files.sizes.items() if path in read_by_spark),
        unchecked=state.unchecked(files),
    )
    if not checkpoint.operators and _kept_state(files, checkpoint, planned):
        return replace(
            checkpoint, missing=(MissingFile(PurePosixPath("state"), "micro-batches kept state, as the logs say"),)
        )
    keyed = {operator.number for operator in checkpoint.operators if operator.is_keyed}
    lacking = partial(
        state.missing_files, files, partitions=checkpoint.partitions, written=partial(_state_ids, files), keyed=keyed
    )
    in_logs = (
        *_missing_in_logs(files, checkpoint, planned, committed),
        *(_missing_in_sink(sink) if sink is not None else ()),
    )
    missing = (*in_logs, *islice(lacking(checkpoint.state_version), MOST_MISSING))
    replayable = (
        bool(missing) and not in_logs and not checkpoint.unfinished and not any(lacking(checkpoint.state_version - 1))
    )
    return replace(checkpoint, missing=missing, replayable=replayable)


def _state_ids(files: Files, version: int) -> frozenset[str]:
    """The ids of the state stores of a version, as the commit of the micro-batch that made it names them (checkpoint format 2)."""
    path = PurePosixPath("commits", str(version - 1))
    content = files.read(path) if path in files.sizes else b""
    return frozenset(
        re.findall(r'"([\w-]{30,})"', content.partition(b'"stateUniqueIds":')[2].decode("utf-8", "replace"))
    )


def _missing_in_logs(
    files: Files, checkpoint: Checkpoint, planned: tuple[int, ...], committed: tuple[int, ...]
) -> Iterator[MissingFile]:
    # Without an entry before, and none of its commit, progress is tracked asynchronously.
    for batch in {*committed[-1:], *(at - 1 for at in planned[-1:])}.intersection(committed).difference(planned):
        yield MissingFile(PurePosixPath("offsets", str(batch)), f"commits/{batch} says that micro-batch {batch} ran")
    if checkpoint.has_entry_before:
        _offsets(files, planned[-2])  # Spark reads the two newest entries
    for key, value in checkpoint.settings.items():
        if not _is_accepted(key, value):
            path = PurePosixPath("offsets", str(planned[-1]))
            yield MissingFile(
                path,
                "Spark sets it when the query resumes",
                f"it stores {key} = {value!r}, a value that Spark does not accept",
            )
    for path in files.sizes:
        if path.name == ".schema.crc" and (schema := path.with_name("schema")) not in files.sizes:
            yield MissingFile(schema, f"{path.name} is there without it: put it back, or remove that, too")
        if (path == PurePosixPath("metadata") or not _BY_NAME.isdisjoint(path.parts)) and path.suffix != ".crc":
            yield from fault(files, path, "Spark reads it when the query resumes")
    for source in checkpoint.sources:
        if source.kind == "files" and (upto := re.fullmatch(r'{"logOffset":(\d{1,18})}', source.offset or "")):
            needed_by = f"without it, source {source.name} does not know which files it has read"
            yield from _missing_in_log(files, PurePosixPath("sources", source.name), int(upto[1]), needed_by)


def _missing_in_sink(files: Files) -> Iterator[MissingFile]:
    """What is missing in the folder that a file sink writes: entries of its log, and files that they name."""
    log = [path for path in files.sizes if path.parts[:-1] == (SINK_LOG,) and _ENTRY.fullmatch(path.name)]
    if not log:
        raise NoSuchCheckpoint(files.where, f"this is not the folder of a file sink: it has no log {SINK_LOG}")
    needed_by = "Spark needs it to read the folder"
    yield from _missing_in_log(files, PurePosixPath(SINK_LOG), max(int(path.stem) for path in log), needed_by)
    compacted = max((int(path.stem) for path in log if path.suffix), default=0)
    for path in (path for path in log if int(path.stem) >= compacted):
        for line in _lines(files, path, least=1)[1]:
            named = _json(path, line)
            parts = PurePosixPath(unquote(str(named.get("path", "")))).parts
            # Below the folder, whatever its name is here: folders of partitions, and the file.
            places = (PurePosixPath(*parts[at:]) for at in range(len(parts)))
            file = next((place for place in places if place in files.sizes), PurePosixPath(*parts[-1:]))
            if named.get("action") == "add":
                yield from fault(files, file, f"{path} names it: {needed_by}", _number(path, named, "size"))


def _missing_in_log(files: Files, log: PurePosixPath, upto: int, needed_by: str) -> Iterator[MissingFile]:
    """The last entry that is missing of those that Spark reads of a log of files, and each that is not whole: from the newest compacted
    entry on, ``9.compact``, which holds all before it. Source: ``CompactibleFileStreamLog.getAllValidBatches`` and ``compactInterval``."""
    entries = {int(path.stem): path for path in files.sizes if path.parent == log and _ENTRY.fullmatch(path.name)}
    compacted = sorted(number for number, path in entries.items() if path.suffix and number <= upto)
    interval = compacted[-1] - (compacted[-2] if compacted[1:] else -1) if compacted else COMPACT_INTERVAL
    needed = range(compacted[-1] if compacted else 0, upto + 1)
    if (lacking := next((number for number in reversed(needed) if number not in entries), None)) is not None:
        yield MissingFile(log / f"{lacking}{'' if (lacking + 1) % interval else '.compact'}", needed_by)
    for path in (path for number, path in entries.items() if number in needed):
        yield from (faults := [*fault(files, path, needed_by)])
        if (
            not faults and files.sizes[path] <= MOST_BYTES
        ):  # a source that has read many files has a large compacted entry
            for line in _lines(files, path, least=1)[1]:
                if _NO_URI.search(str(_json(path, line).get("path", ""))):
                    raise DamagedCheckpoint(path, "a line names a path that is no URI: the entry is damaged")


def _kept_state(files: Files, checkpoint: Checkpoint, planned: tuple[int, ...]) -> bool:
    """Whether the logs say that a micro-batch kept state: its commit names versions of stores, or it was planned without new data, which
    only a stateful operator asks for. Source: ``CommitMetadata.stateUniqueIds``, ``IncrementalExecution.shouldRunAnotherBatch``."""
    if checkpoint.committed is None:
        return False
    if checkpoint.committed.names_stores:
        return True
    batches = [batch for batch in planned if batch <= checkpoint.committed.batch][-MOST_LOOKED_AT:]
    with suppress(DamagedCheckpoint):
        entries = [_offsets(files, batch) for batch in batches]
        # Without settings, they are those of continuous processing, which logs an epoch without data, too.
        return any(after.settings and before.sources == after.sources for before, after in pairwise(entries))
    return False


def _query_id(files: Files) -> str | None:
    path = PurePosixPath("metadata")
    if path not in files.sizes:
        return None
    content = files.read(path)
    try:
        if not _UUID.fullmatch(id := str(json.loads(content)["id"])):
            raise ValueError("Spark reads no other")
        return id
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedCheckpoint(path, "this is not the metadata of a query, or it is incomplete") from None


def _batches(files: Files, log: str) -> tuple[int, ...]:
    """The numbers of the micro-batches in a log, ``offsets`` or ``commits``, oldest first."""
    names = (path.name for path in files.sizes if path.parts[:-1] == (log,))
    return tuple(sorted(int(name) for name in names if re.fullmatch(r"[0-9]+", name)))


def _offsets(files: Files, batch: int) -> OffsetEntry:
    path = PurePosixPath("offsets", str(batch))
    format, (text, *rest) = _lines(files, path, least=2)
    metadata = _json(path, text or "{}")
    settings = {str(key): str(value) for key, value in metadata.get("conf", {}).items()}
    return OffsetEntry(
        batch,
        format,
        _number(path, metadata, "batchWatermarkMs"),
        _number(path, metadata, "batchTimestampMs"),
        settings,
        tuple(_sources(path, rest, named=format > 1)),
    )


def _commit(files: Files, batch: int) -> CommitEntry:
    path = PurePosixPath("commits", str(batch))
    format, rest = _lines(files, path, least=1)
    metadata = _json(path, rest[0] if rest else "{}")
    watermark_ms = _number(path, metadata, "nextBatchWatermarkMs")
    return CommitEntry(batch, format, watermark_ms, bool(metadata.get("stateUniqueIds")))


def _lines(files: Files, path: PurePosixPath, least: int) -> tuple[int, list[str]]:
    """The version of the format of a log's entry, and the lines below it."""
    try:
        # A newline at the end begins no further line.
        first, *rest = files.read(path).decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise DamagedCheckpoint(path, "this is not UTF-8 text, as an entry of this log should be") from None
    version = re.fullmatch(r"v(\d{1,9})", first.strip())
    if version is None:
        raise DamagedCheckpoint(path, "the first line is not a format version such as v1: the entry is incomplete")
    if len(rest) < least - 1:
        raise DamagedCheckpoint(path, "the entry is incomplete")
    if not 1 <= int(version[1]) <= NEWEST_FORMAT:
        known = f"known are v1 to v{NEWEST_FORMAT}"
        raise DamagedCheckpoint(path, f"the format of this entry is {first.strip()}, which is unknown: {known}")
    return int(version[1]), rest


def _json(path: PurePosixPath, text: str) -> dict[str, Any]:
    metadata = None
    with suppress(ValueError, RecursionError):
        metadata = json.loads(text)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("conf", {}), dict):
        raise DamagedCheckpoint(
            path, "a line is not the JSON object that Spark writes: the entry is damaged or incomplete"
        )
    return metadata


def _number(path: PurePosixPath, metadata: Mapping[str, Any], key: str) -> int:
    value = metadata.get(key, 0)
    if not isinstance(value, int) or abs(value) >= 1 << 63:
        raise DamagedCheckpoint(path, f"{key} is not a number{' of milliseconds' if key.endswith('Ms') else ''}")
    return value


def _sources(path: PurePosixPath, lines: list[str], *, named: bool) -> Iterator[CheckpointSource]:
    if len(lines) > MOST_SOURCES:
        raise DamagedCheckpoint(path, f"it has more than {MOST_SOURCES:,} lines: no query reads so many sources")
    for number, line in enumerate(lines):
        name, _, offset = line.partition(":") if named else (str(number), "", line)
        yield CheckpointSource(name, None if offset == NOTHING_READ else offset)


OLDER = SparkVersion.parse("2.3.4")
"""Stands for all releases before those that we know."""


def lines_of_writer(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The lines of Spark that may have run the query last, as its settings show, oldest first; that of `OLDER` stands for all
    before 2.4, too. Empty if nothing was planned, or by continuous processing, which stores none."""
    if checkpoint.planned is None or not checkpoint.planned.planned_ms:
        return ()
    # Setting → the releases that store it.
    stored = {key: VersionRange.parse(text) for key, text in read_data(__package__, "writers.yaml").items()}

    def may_have_written(version: SparkVersion) -> bool:
        return all((key in checkpoint.settings) is (version in writers) for key, writers in stored.items())

    return tuple(dict.fromkeys(version.line for version in (OLDER, *releases()) if may_have_written(version)))


NO_FILE_READ = '{"logOffset":-1}'
"""The offset of a source of files that has read none (Spark's ``FileStreamSourceOffset``)."""


def copy_detached(
    files: Files, checkpoint: Checkpoint, folder: Path, trusted: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Copy a checkpoint to a folder that does not exist, without its sources and without a micro-batch that was planned and not committed.

    Args:
        trusted: settings of the user; a class that one names may be named by the checkpoint.

    Raises:
        NoSuchCheckpoint: no micro-batch is committed, or a file cannot be read.
        DamagedCheckpoint: it names a class that is not Spark's, or a zip was not written by RocksDB.
        OSError: the copy cannot be written.
    """
    if checkpoint.committed is None:
        raise NoSuchCheckpoint(files.where, "no micro-batch is committed: there is no state to resume")
    folder.mkdir(parents=True)
    for path in files.sizes:
        is_offsets = path.parts[:-1] == ("offsets",)
        # Checksums of entries of the offset log and of zips are left out, too: both are rewritten.
        if path.parts[0] == "sources" or path.name.endswith(".zip.crc"):
            continue
        if is_offsets and not (path.name.isdecimal() and int(path.name) <= checkpoint.committed.batch):
            continue
        content = files.read(path)
        if is_offsets:
            _check_classes(path, _offsets(files, int(path.name)).settings, trusted)
            content = _without_sources(path, content)
        if path.suffix == ".zip":
            content = _rewritten(path, content)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def stored_settings(checkpoint: Checkpoint, trusted: Mapping[str, str]) -> dict[str, str]:
    """The settings that a checkpoint stores, without values that Spark does not accept; see `copy_detached` for ``trusted`` and errors."""
    if checkpoint.planned is not None:
        _check_classes(PurePosixPath("offsets", str(checkpoint.planned.batch)), checkpoint.settings, trusted)
    return {key: value for key, value in checkpoint.settings.items() if _is_accepted(key, value)}


def _is_accepted(key: str, value: str) -> bool:
    known = "(?i:true|false)" if key.endswith(_SWITCHES) else _VALUES.get(key, "(?s:.*)")
    return re.fullmatch(known, value) is not None


def _check_classes(path: PurePosixPath, settings: Mapping[str, str], trusted: Mapping[str, str]) -> None:
    """Refuse an entry of the offset log that names a class: Spark loads it, whatever it is, when it resumes."""
    for key, known in CLASSES.items():
        value = settings.get(key)
        if value is not None and value not in known and value != trusted.get(key):
            hint = f"it is not Spark's own; if you trust it, pass --conf {key}={value}"
            raise DamagedCheckpoint(path, f"{key} names {value!r}, which Spark would load: {hint}")


def _rewritten(path: PurePosixPath, content: bytes) -> bytes:
    """The zip, rewritten with the same entries. Spark reads a zip from its beginning and ignores the names and sizes at its end, so that
    it could unpack other entries than those that are checked here."""
    if not content.startswith(b"PK"):
        return content  # Spark unpacks nothing
    written = BytesIO()
    try:
        with ZipFile(BytesIO(content)) as zipped, ZipFile(written, "w", ZIP_DEFLATED) as target:
            entries = zipped.infolist()
            if any(PurePosixPath(entry.filename).name != entry.filename for entry in entries):
                raise DamagedCheckpoint(path, "a snapshot of RocksDB has no folders: it was not written by Spark")
            if sum(entry.file_size for entry in entries) > MOST_UNPACKED:
                raise DamagedCheckpoint(path, f"it unpacks to more than {MOST_UNPACKED // 1024**2} MiB")
            for entry in entries:
                unpacked = zipped.read(entry)
                if entry.filename == "metadata":
                    _check_names(path, unpacked)
                target.writestr(entry.filename, unpacked)
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise DamagedCheckpoint(path, f"this zip is damaged: {error}") from None
    return written.getvalue()


def _check_names(path: PurePosixPath, metadata: bytes) -> None:
    """Refuse a list of files of RocksDB that names one elsewhere: Spark copies each file from the first name to the second."""
    named: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        # All pairs, because parsers differ in which of two with the same key counts.
        named.extend(name for key, name in pairs if key.endswith("Name") and isinstance(name, str))

    try:
        json.loads(metadata.decode("utf-8", "replace").partition("\n")[2], object_pairs_hook=collect)
    except (ValueError, RecursionError):
        raise DamagedCheckpoint(path, "its list of files cannot be read") from None
    for name in named:
        if PurePosixPath(name).name != name:
            raise DamagedCheckpoint(path, f"it names the file {name!r}: it was not written by Spark")


def _without_sources(path: PurePosixPath, entry: bytes) -> bytes:
    """An entry of the offset log: the format, the metadata, and a line for each source."""
    format, metadata, *sources = entry.decode("utf-8").removesuffix("\n").split("\n")
    named = format.strip() != "v1"
    names = (f"{line.partition(':')[0]}:" if named else "" for line in sources)
    detached = (f"{name}{NO_FILE_READ}" if line else line for name, line in zip(names, sources, strict=True))
    # Rewritten: if a key occurs twice, parsers differ in which value counts.
    return "\n".join([format, json.dumps(_json(path, metadata or "{}")), *detached]).encode("utf-8")
