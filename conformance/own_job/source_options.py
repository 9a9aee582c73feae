"""Options with which a source decides which rows come, and when: values that Spark refuses, those that can act in a trial, and others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from conformance.core.case import TABLE_FORMATS, RunSource
from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.language.streams import FILES, KAFKA
from conformance.own_job.job_case import CHANGES, WAITING_COMMITS, WAITING_FILES, ActingOptions
from harness.engine.protocol import SourceSeen
from reports.results.status import Statement

_SOURCES = {**dict.fromkeys(("csv", "json", "orc", "parquet", "text", "xml"), FILES), "changes": "delta"}
"""Format → the source that reads it, if that has another name."""
_DECIDES = re.compile(
    r"(starting|ending|initialposition|streamfrom|streaming(max|min|skip)|skip(change|delete|overwrite)|readchange|modified(after|before))\w*"
    r"|(start|end)(timestamp|offset|version|position)s?|(max|min|rows|records|events|advancemillis)\w*per\w+|ignore(deletes|changes)"
    r"|ignore(missing|corrupt)files|ignorefiledeletion|witheventtimeorder|maxtriggerdelay|minpartitions|latestfirst|maxfileage|cleansource"
    r"|filenameonly|pathglobfilter|recursivefilelookup|includeexistingfiles|allowoverwrites|failondataloss|excluderegex|rampuptime"
)
"""What such an option is called, in small letters without ``-``: the last part of its name, as in ``cloudFiles.maxFilesPerTrigger``."""
_ON = frozenset({"failondataloss", "includeexistingfiles"})
"""Those that are true by default; the others are false or off."""
_LACKS = {
    r"(start|end|initial|streamfrom)\w*": "place of the real source to begin or end at",
    r"skip\w+|streamingskip\w+|ignore(changes|deletes)|readchange\w+": "updates or deletes of a table",
    "witheventtimeorder": "first snapshot of a table",
}
"""Options → what they are about, and a sample does not have."""
_LONGEST = 60
"""Characters of a value that are shown."""
_POSITIVE, _INTEGER = (r"\+?0*[1-9]\d{0,9}", "a positive integer"), (r"[+-]?\d{1,18}", "an integer")
_BOOLEAN, _MS = ("true|false", "true or false"), (r"[+-]?\d{1,18}", "milliseconds since 1970")
_END = ("", "no value: a streaming query has no end; omit it")
_OFFSETS = r'\{(\s*"[^"]+"\s*:\s*\{(\s*"\d+"\s*:\s*-?\d+\s*,?)*\s*\}\s*,?)*\s*\}'
_ALLOWED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    # FileStreamOptions of Spark.
    FILES: {
        "maxfilespertrigger": _POSITIVE,
        "maxfileage": (r"\d+(us|ms|s|m|min|h|d)?", "a time such as 12h or 7d"),
        **dict.fromkeys(("latestfirst", "filenameonly"), _BOOLEAN),
        "cleansource": ("off|delete|archive", "off, delete or archive"),
    },
    # https://docs.databricks.com/aws/en/ingestion/cloud-object-storage/auto-loader/options
    "cloudfiles": {"maxfilespertrigger": _POSITIVE, "includeexistingfiles": _BOOLEAN},
    # KafkaSourceProvider.validateStreamOptions and getKafkaOffsetRangeLimit of Spark.
    KAFKA: {
        "startingoffsets": (f"earliest|latest|{_OFFSETS}", 'earliest, latest, or JSON such as {"orders": {"0": 5}}'),
        "startingtimestamp": _MS,
        "startingoffsetsbytimestampstrategy": ("error|latest", "error or latest"),
        **dict.fromkeys(("endingoffsets", "endingoffsetsbytimestamp"), _END),
        "minpartitions": _POSITIVE,
        **dict.fromkeys(("maxoffsetspertrigger", "minoffsetspertrigger"), _INTEGER),
        "failondataloss": _BOOLEAN,
    },
    # DeltaOptions of Delta Lake.
    "delta": {
        "startingversion": (r"latest|\+?\d{1,18}", "latest, or an integer from 0 on"),
        "maxfilespertrigger": _POSITIVE,
        **dict.fromkeys(("ignoredeletes", "ignorechanges", "skipchangecommits", "failondataloss"), _BOOLEAN),
        **dict.fromkeys(("readchangefeed", "readchangedata", "witheventtimeorder"), _BOOLEAN),
    },
    # https://iceberg.apache.org/docs/latest/spark-configuration/#read-options
    "iceberg": {
        "streamfromtimestamp": _MS,
        **dict.fromkeys(("streamingmaxfilespermicrobatch", "streamingmaxrowspermicrobatch"), _POSITIVE),
        **dict.fromkeys(("streamingskipdeletesnapshots", "streamingskipoverwritesnapshots"), _BOOLEAN),
    },
}
"""Source → option → a pattern of the values that it takes, and what they are."""
_LIMIT = "maxFilesPerTrigger"
_OF_DELTA = {key.lower(): key for key in (_LIMIT, "startingVersion", "startingTimestamp", *CHANGES)}
_KEYS: Mapping[RunSource, Mapping[str, Mapping[str, str]]] = {
    FILES: {
        FILES: {key.lower(): key for key in (_LIMIT, "latestFirst", "cleanSource")},
        # A file of the trial is like a file of a table or of a folder that Auto Loader reads.
        **{source: {_LIMIT.lower(): _LIMIT} for source in ("cloudfiles", "delta", "table")},
        "iceberg": {"streamingmaxfilespermicrobatch": _LIMIT},
    },
    KAFKA: {KAFKA: {key.lower(): key for key in ("startingOffsets", "maxOffsetsPerTrigger", "minPartitions")}},
    "delta": dict.fromkeys(("delta", "table"), _OF_DELTA),
    "iceberg": {"iceberg": {"streamingmaxfilespermicrobatch": _LIMIT, "streamfromtimestamp": "startingTimestamp"}},
}
"""What the rows of a trial come from → source → option → the key for it that a stream of a case has."""


def check(program: str, sources: Iterable[SourceSeen]) -> None:
    """Raise WrongUsage for the first option with a value that Spark refuses: in a trial, Spark never sees it."""
    for source in sources:
        kind, options = _kind(source), {_called(name): (name, value) for name, value in source.options.items()}
        where = f"{source.at or program}: the source {source.name} ({source.format}): Spark refuses"
        for key, (name, value) in options.items():
            pattern, described = _ALLOWED.get(kind, {}).get(key, (".*", ""))
            if re.fullmatch(rf"\s*(?:{pattern})\s*", value, re.IGNORECASE | re.DOTALL) is None:
                raise WrongUsage(f"{where} {_shown(name, value)}: {name} takes {described}")
        if kind == "delta" and {"startingversion", "startingtimestamp"} <= options.keys():
            raise WrongUsage(f"{where} startingVersion beside startingTimestamp: omit one of them")
        archives = kind == FILES and options.get("cleansource", ("", ""))[1].lower() == "archive"
        if archives and "sourcearchivedir" not in options:
            raise WrongUsage(f"{where} cleanSource=archive alone: add sourceArchiveDir, or use delete")


def acting(sources: Iterable[SourceSeen]) -> Iterator[ActingOptions]:
    """Yield the options that can act in trials of their own, whose streams are files, topics or tables."""
    read = [*sources]
    for kind in _KEYS:
        own = {source.name: keys for source in read if (keys := _acts(source, kind))}
        if own:
            named = (f"{', '.join(shown for shown, _, _ in keys.values())} of {name}" for name, keys in own.items())
            of_kind: Mapping[str, Json] = {"source": kind} if kind != FILES else {}
            streams = {
                name: {**of_kind, **{key: value for _, key, value in keys.values()}} for name, keys in own.items()
            }
            yield ActingOptions(kind, streams, " and ".join(named))


def not_acting(options: ActingOptions, source: RunSource) -> Statement:
    """Say that options did not act which can; ``source``: what ``--source`` says."""
    how = f": --source {options.source} lets them act" if options.source not in (FILES, source) else ""
    return Statement("unsupported", "–", f"not tried: {options.shown}{how}")


def not_tried(source: SourceSeen, *, but: bool) -> Iterator[Statement]:
    """Say which options no trial lets act, since its rows are those of a sample; ``but``: without those of `acting`."""
    acts = {called for kind in _KEYS for called in _acts(source, kind)} if but else set[str]()
    decide = [(name, value) for name, value in source.options.items() if _decides(_called(name), value)]
    shown = [_shown(name, value) for name, value in decide if _called(name) not in acts]
    if shown:
        what = f"{', '.join(shown)} of the source {source.name} ({source.format})"
        called = [_called(name) for name, _ in decide if _called(name) not in acts]
        lacks = [what for names, what in _LACKS.items() if any(re.fullmatch(names, name) for name in called)]
        why = ", and have no ".join(
            ["the rows of the sample come in its order, whatever the source would give", *lacks]
        )
        yield Statement("unsupported", "–", f"{what} {'are' if len(shown) > 1 else 'is'} not tried: {why}")


def _acts(source: SourceSeen, kind: RunSource) -> dict[str, tuple[str, str, Json]]:
    """The options of a source that can act: each as it is shown, with the key of a stream that stands for it, and its value."""
    written = dict[str, tuple[str, str, Json]]()
    options = {_called(name): (name, value.strip().lower()) for name, value in source.options.items()}
    for called, key in _KEYS[kind].get(_kind(source), {}).items():
        name, value = options.get(called, (key, ""))
        begins = kind in TABLE_FORMATS and key.startswith("starting")
        # Neither offsets of a real topic nor a limit above all files of the trial can.
        beyond = kind != KAFKA and not begins and value.isdigit() and int(value) >= WAITING_FILES
        if value and _decides(called, value) and (begins or value[0] not in "{-+0") and not beyond:
            shown = f"{key if key.lower() == called else name}={value}"
            typed: Json = int(value) if value.isdigit() else value == "true" or value
            if begins and value != "latest" and typed not in range(WAITING_COMMITS):
                typed = WAITING_COMMITS // 2 + 1
                shown += f" as version {typed}"
            written[called] = (shown, key, typed)
    limited = kind in TABLE_FORMATS and {key for _, key, _ in written.values()} <= {_LIMIT}
    return {} if limited else written  # as a limit of files


def _kind(source: SourceSeen) -> str:
    return _SOURCES.get(source.format, source.format)


def _called(option: str) -> str:
    return re.sub(r"[-_]", "", option.rpartition(".")[2]).lower()


def _decides(called: str, value: str) -> bool:
    """Whether an option decides which rows come, with a value that is not its default."""
    defaults = ("true",) if called in _ON else ("false", "off")
    return _DECIDES.fullmatch(called) is not None and value.strip().lower() not in defaults


def _shown(name: str, value: str) -> str:
    return f"{name}={value if len(value) <= _LONGEST else value[:_LONGEST] + '…'}"
