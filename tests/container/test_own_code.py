"""A job of a user's own runs in a container: its modules reach the driver and the Python workers there."""

from harness.runtimes.containers.images import Images
from harness.runtimes.containers.runtime import Confinement, ContainerRuntime
from harness.targets.targets import Targets
from tests.engine.own_job import check_own_job, own_job
from tests.support.effort import full_run_only


@full_run_only
def test_a_udf_of_a_named_function_and_its_mistake(daemon, spark_35, tmp_path):
    (target,) = Targets.load().select(["3.5"])
    code, cases = own_job(tmp_path)
    runtime = ContainerRuntime(Images({str(target.version): spark_35}), Confinement(), own_code=code)
    try:
        check_own_job(runtime, target, cases)
    finally:
        runtime.close()
