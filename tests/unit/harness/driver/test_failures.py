"""The codes of failures, and the reason that a Connect server gives."""

import pytest

from harness.driver import failures
from harness.driver.failures import DriverFailure, StorageUnwritable, grpc_details, reason_of
from harness.engine.protocol import FailureReason


def test_the_codes_of_the_driver_are_those_of_the_protocol():
    raised = {one.reason for one in vars(failures).values() if isinstance(one, type) and issubclass(one, DriverFailure)}
    assert raised | {"python-unsupported"} == {reason.value for reason in FailureReason}


@pytest.mark.parametrize(
    ("error", "starting", "reason"),
    [
        (StorageUnwritable("hdfs://host/tests", "refused"), True, "storage-unwritable"),
        (ModuleNotFoundError("pandas"), True, "python-unsupported"),
        (ModuleNotFoundError("pandas"), False, "driver-error"),
        (KeyError("x"), True, "driver-error"),
    ],
)
def test_the_code_of_an_error(error, starting, reason):
    assert reason_of(error, starting=starting) == reason


class RpcError(Exception):
    """As much of gRPC's as is needed."""

    def details(self):
        return "Invalid authentication token"


def converted(error):
    """As pyspark raises its own class ``from None``."""
    try:
        raise error
    except RpcError:
        raise RuntimeError("status = UNAUTHENTICATED, details = ...") from None


def test_the_reason_of_a_server_is_grpcs_own():
    with pytest.raises(RuntimeError) as raised:
        converted(RpcError())
    assert grpc_details(raised.value) == "Invalid authentication token"


def test_without_grpc_it_is_the_errors_text():
    assert grpc_details(ImportError("grpcio >= 1.48 must be installed")) == "grpcio >= 1.48 must be installed"
