"""Stands for ``awsglue``, the library of AWS Glue, as far as a query needs it; what it lacks is an error that names it.

https://github.com/awslabs/aws-glue-libs has the library, which only runs beside the jars of Glue.
"""

from __future__ import annotations

import importlib.util
import logging
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Optional, Sequence

from .modules import importable, made

_TRANSFORMS = (
    "ApplyMapping DropFields DropNullFields FillMissingValues Filter FindIncrementalMatches FindMatches FlatMap Join Map "
    "MapToCollection MergeCollections Relationalize RenameField ResolveChoice SelectFields SelectFromCollection Spigot SplitFields "
    "SplitRows Unbox UnnestFrame"
).split()


class NotInATrial(Exception):
    """What a script asks Glue for, and only Glue has."""


def _lacking(name: str) -> NotInATrial:
    what = "awsglue's {} is not in a trial, which has GlueContext with create_data_frame and forEachBatch, Job and getResolvedOptions"
    return NotInATrial(what.format(name) + ": use a DataFrame of Spark")


class _Partial:
    """What only has the attributes that a subclass gives it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _lacking("{}.{}".format(self._name, name))

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise _lacking(self._name)


class _Frames(_Partial):
    """``create_data_frame`` of a ``GlueContext``: streams of the program."""

    def __init__(self, run: Any) -> None:
        super().__init__("create_data_frame")
        self._run = run

    def from_options(
        self, connection_type: str, connection_options: Optional[Dict[str, Any]] = None, *_: Any, **__: Any
    ) -> Any:
        options = dict(connection_options or {})
        topic = options.get("topicName") or options.get("subscribe")
        if connection_type == "kafka" and "classification" not in options:
            return self._run.load({"options": dict(options, subscribe=topic)}, "kafka", None, None)
        if connection_type not in ("kafka", "kinesis"):
            raise _lacking("create_data_frame of the connection type {}".format(connection_type))
        name = topic or options.get("streamARN") or options.get("streamName")
        return self._run.load({"options": options}, "glue-" + connection_type, name, options.get("schema"))

    def from_catalog(self, database: str, table_name: str, *_: Any, **named: Any) -> Any:
        options = named.get("additional_options") or {}
        return self._run.load({"options": options}, "table", "{}.{}".format(database, table_name), None)


class _Context(_Partial):
    def __init__(self, run: Any) -> None:
        super().__init__("GlueContext")
        self.spark_session = run.session
        self.get_logger = lambda: logging.getLogger("awsglue")
        self.create_data_frame = _Frames(run)
        self.create_data_frame_from_options = self.create_data_frame.from_options
        self.create_data_frame_from_catalog = self.create_data_frame.from_catalog

    def forEachBatch(self, frame: Any, batch_function: Any, options: Optional[Dict[str, Any]] = None) -> None:  # noqa: N802
        given = options or {}
        for name in ("windowSize", "checkpointLocation"):
            if name not in given:
                raise Exception("Missing {} argument".format(name))  # as Glue says
        writer = frame.writeStream.foreachBatch(batch_function).trigger(processingTime=given["windowSize"])
        writer.option("checkpointLocation", given["checkpointLocation"]).start().awaitTermination()


class _DynamicFrame(_Partial):
    def __init__(self, frame: Any) -> None:
        super().__init__("DynamicFrame")
        self._frame = frame

    @classmethod
    def fromDF(cls, dataframe: Any, glue_ctx: Any, name: str) -> _DynamicFrame:  # noqa: ARG003, N802
        return cls(dataframe)

    def toDF(self, options: Any = None) -> Any:  # noqa: ARG002, N802
        return self._frame


_RESERVED = ("TempDir", "RedshiftTempDir", "JOB_ID", "JOB_RUN_ID", "SECURITY_CONFIGURATION")
"""Arguments that a script has without asking for them."""


def _lacking_arguments(names: Sequence[str]) -> NotInATrial:
    asked = " ".join("--{} VALUE".format(name) for name in names)
    return NotInATrial("getResolvedOptions lacks arguments of the job: end the command with -- {}".format(asked))


class _Arguments(Dict[str, str]):
    def __missing__(self, name: str) -> str:
        raise _lacking_arguments([name])


def resolved_options(argv: Sequence[str], options: Sequence[str]) -> Dict[str, str]:
    """``getResolvedOptions``: ``--name value`` or ``--name=value`` of the arguments of the script."""
    given: Dict[str, str] = {}
    left: List[str] = list(argv[1:])
    while left:
        name, sign, value = left.pop(0).partition("=")
        if name.startswith("--"):
            given[name[2:]] = value if sign else left.pop(0) if left and not left[0].startswith("--") else ""
    missing = [name for name in options if name not in given and name not in _RESERVED]
    if missing:
        raise _lacking_arguments(missing)
    return _Arguments({name.replace("-", "_"): given[name] for name in (*options, *_RESERVED) if name in given})


@contextmanager
def shim(run: Any) -> Iterator[None]:
    """Let the program of a run import ``awsglue``, unless it is installed."""
    if importlib.util.find_spec("awsglue") is not None:
        yield
        return
    transforms = {name: _Partial(name) for name in _TRANSFORMS}
    contents: Dict[str, Dict[str, Any]] = {
        "awsglue": {"__path__": [], "DynamicFrame": _DynamicFrame},
        "awsglue.context": {"GlueContext": lambda *_, **__: _Context(run)},
        "awsglue.job": {"Job": lambda _: SimpleNamespace(init=lambda *_, **__: None, commit=lambda: None)},
        "awsglue.utils": {"getResolvedOptions": resolved_options},
        "awsglue.dynamicframe": {"DynamicFrame": _DynamicFrame},
        "awsglue.transforms": {**transforms, "__all__": list(transforms)},
        "awsgluedq": {"__path__": []},
        "awsgluedq.transforms": {"EvaluateDataQuality": _Partial("EvaluateDataQuality")},
    }
    with importable(*(made(name, names) for name, names in contents.items())):
        yield
