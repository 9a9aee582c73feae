"""Options with which a source decides which rows come, and when: values that Spark refuses, and what a trial does not let act."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from conformance.core.errors import WrongUsage
from harness.engine.protocol import SourceSeen
from reports.results.status import Statement

_FILES = frozenset({"csv", "json", "orc", "parquet", "text", "xml"})
"""The formats that Spark's own source for files reads."""
_DECIDES = re.compile(
    r"(starting|ending|initialposition|streamfrom|streaming(max|min|skip)|skip(change|delete|overwrite)|readchange|modified(after|before))\w*"
    r"|(start|end)(timestamp|offset|version|position)s?|(max|min|rows|records|events|advancemillis)\w*per\w+|ignore(deletes|changes)"
    r"|ignore(missing|corrupt)files|ignorefiledeletion|witheventtimeorder|maxtriggerdelay|minpartitions|latestfirst|maxfileage|cleansource"
    r"|filenameonly|pathglobfilter|recursivefilelookup|includeexistingfiles|allowoverwrites|failondataloss|excluderegex|rampuptime"
)
"""What such an option is called, in small letters without ``-``: the last part of its name, as in ``cloudFiles.maxFilesPerTrigger``."""
_LONGEST = 60
"""Characters of a value that are shown."""


class _Values(NamedTuple):
    """The values that Spark takes of an option; what ``allows`` returns of another is false."""

    allows: Callable[[str], object]
    described: str


def _like(pattern: str, described: str) -> _Values:
    return _Values(re.compile(rf"\s*(?:{pattern})\s*", re.IGNORECASE).fullmatch, described)


def _is_offsets(value: str) -> bool:
    """Whether this names an end of a topic, or is JSON with the offset of each partition."""
    if value.strip().lower() in ("earliest", "latest"):
        return True
    try:
        topics = json.loads(value)
    except ValueError:
        return False
    partitions = topics.values() if isinstance(topics, dict) else [None]
    return all(isinstance(each, dict) and all(isinstance(at, int) for at in each.values()) for each in partitions)


_POSITIVE, _LONG = _like(r"\+?0*[1-9]\d{0,9}", "a positive integer"), _like(r"[+-]?\d{1,18}", "an integer")
_BOOLEAN = _like("true|false", "true or false")
_END = _Values(lambda _: False, "no value: a streaming query has no end; omit it")
_OF_FILES = {
    "maxfilespertrigger": _POSITIVE,
    "maxfileage": _like(r"\d+(us|ms|s|m|min|h|d)?", "a time such as 12h or 7d"),
    "latestfirst": _BOOLEAN,
    "filenameonly": _BOOLEAN,
    "cleansource": _like("off|delete|archive", "off, delete or archive"),
}
"""As Spark's FileStreamOptions reads them."""
_OF_TABLES = {
    "startingversion": _like(r"latest|\+?\d{1,18}", "latest, or an integer from 0 on"),
    "maxfilespertrigger": _POSITIVE,
    **dict.fromkeys(("ignoredeletes", "ignorechanges", "skipchangecommits", "failondataloss"), _BOOLEAN),
    **dict.fromkeys(("readchangefeed", "readchangedata", "witheventtimeorder"), _BOOLEAN),
}
"""As DeltaOptions of Delta Lake reads them."""
_ALLOWED: Mapping[str, Mapping[str, _Values]] = {
    **dict.fromkeys(_FILES, _OF_FILES),
    # KafkaSourceProvider.validateStreamOptions, and getKafkaOffsetRangeLimit there.
    "kafka": {
        "startingoffsets": _Values(_is_offsets, 'earliest, latest, or JSON such as {"orders": {"0": 5}}'),
        "startingtimestamp": _like(r"[+-]?\d{1,18}", "milliseconds since 1970"),
        "startingoffsetsbytimestampstrategy": _like("error|latest", "error or latest"),
        **dict.fromkeys(("endingoffsets", "endingoffsetsbytimestamp"), _END),
        "minpartitions": _POSITIVE,
        **dict.fromkeys(("maxoffsetspertrigger", "minoffsetspertrigger"), _LONG),
        "failondataloss": _BOOLEAN,
    },
    **dict.fromkeys(("delta", "changes"), _OF_TABLES),
    # https://iceberg.apache.org/docs/latest/spark-configuration/#read-options
    "iceberg": {
        "streamfromtimestamp": _like(r"[+-]?\d{1,18}", "milliseconds since 1970"),
        **dict.fromkeys(("streamingmaxfilespermicrobatch", "streamingmaxrowspermicrobatch"), _POSITIVE),
        **dict.fromkeys(("streamingskipdeletesnapshots", "streamingskipoverwritesnapshots"), _BOOLEAN),
    },
}
"""Format → option → the values that it takes."""
_DEFAULTS = frozenset({("failondataloss", "true"), ("includeexistingfiles", "true")})


def check(program: str, sources: Iterable[SourceSeen]) -> None:
    """Raise WrongUsage for the first option with a value that Spark refuses: in a trial, Spark never sees it."""
    for source in sources:
        options = {_called(name): (name, value) for name, value in source.options.items()}
        where = f"{source.at or program}: the source {source.name} ({source.format}): "
        for key, (name, value) in options.items():
            values = _ALLOWED.get(source.format, {}).get(key)
            if values is not None and not values.allows(value):
                raise WrongUsage(f"{where}Spark refuses {_shown(name, value)}: {name} takes {values.described}")
        if source.format in ("delta", "changes") and {"startingversion", "startingtimestamp"} <= options.keys():
            raise WrongUsage(f"{where}Spark refuses startingVersion beside startingTimestamp: omit one of them")
        archives = source.format in _FILES and options.get("cleansource", ("", ""))[1].lower() == "archive"
        if archives and "sourcearchivedir" not in options:
            raise WrongUsage(f"{where}Spark refuses cleanSource=archive alone: add sourceArchiveDir, or use delete")


def not_tried(source: SourceSeen) -> Iterator[Statement]:
    """Say which options a trial does not let act, since its rows are those of a sample."""
    named = [_shown(name, value) for name, value in source.options.items() if _decides(_called(name), value)]
    if named:
        what = f"{', '.join(named)} of the source {source.name} ({source.format})"
        why = "the rows of the sample come in its order, whatever the source would give"
        yield Statement("unsupported", "–", f"{what} {'are' if len(named) > 1 else 'is'} not tried: {why}")


def _called(option: str) -> str:
    return re.sub(r"[-_]", "", option.rpartition(".")[2]).lower()


def _decides(called: str, value: str) -> bool:
    is_default = (called, value.lower()) in _DEFAULTS
    off = value.lower() in ("false", "off") and (called, "true") not in _DEFAULTS
    return _DECIDES.fullmatch(called) is not None and not is_default and not off


def _shown(name: str, value: str) -> str:
    return f"{name}={value if len(value) <= _LONGEST else value[:_LONGEST] + '…'}"
