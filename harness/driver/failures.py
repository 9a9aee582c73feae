"""Failures that say nothing about Spark's semantics. The host tells them apart by ``reason``, never by their text."""

from __future__ import annotations


class DriverFailure(Exception):
    """``reason``: the code in the protocol's ``Failed``, one of the host's ``FailureReason``."""

    reason = "driver-error"


class PysparkMissing(DriverFailure):
    """This Python finds no pyspark."""

    reason = "pyspark-missing"


class StorageUnwritable(DriverFailure):
    """The directory that ``--storage`` names cannot be written. ``url``: of the directory; ``why``: the file system's message."""

    reason = "storage-unwritable"

    def __init__(self, url: str, why: str) -> None:
        super().__init__("cannot write to {}: {}".format(url, why))


class ConnectRefused(DriverFailure):
    """The Spark Connect server did not open a session; the text is its reason."""

    reason = "connect-refused"


class EngineLost(DriverFailure):
    """The JVM or the server no longer answers."""

    reason = "engine-lost"


class DiskFull(DriverFailure):
    """No space is left for checkpoint or input."""

    reason = "disk-full"


class FilesUnwritable(DriverFailure):
    """Checkpoint or input cannot be written."""

    reason = "files-unwritable"


class MachineOverloaded(DriverFailure):
    """The machine had no time or memory to start a Python worker; it may next time."""

    reason = "machine-overloaded"


class ExecutorsLost(DriverFailure):
    """Spark gave up because the cluster lost executors repeatedly."""

    reason = "executors-lost"


class KafkaFailed(DriverFailure):
    """The broker did not do what the case needs; the text is its reason."""

    reason = "kafka-failed"


class NotPermitted(DriverFailure):
    """The case does what only ``--allow-code`` permits. ``why``: what that is."""

    reason = "not-permitted"

    def __init__(self, why: str) -> None:
        super().__init__("{}; only --allow-code permits that".format(why))


def reason_of(error: BaseException, *, starting: bool = False) -> str:
    """The code for an error. ``starting``: it was raised before the engine was up."""
    if isinstance(error, DriverFailure):
        return error.reason
    # pyspark, or the driver itself, does not import in this Python.
    if starting and isinstance(error, (ImportError, SyntaxError)):
        return "python-unsupported"
    return DriverFailure.reason


def grpc_details(error: BaseException) -> str:
    """The server's or gRPC's own message, if there is one; pyspark puts it into a text with status and addresses."""
    inner: BaseException | None = error
    while inner is not None:
        details = getattr(inner, "details", None)  # of a grpc.RpcError; pyspark raises its own class `from None`
        if callable(details):
            return str(details())
        inner = inner.__cause__ or inner.__context__
    return str(error)
