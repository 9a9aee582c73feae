"""How much memory the engine has taken."""

from __future__ import annotations

import os
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory(spark: Any) -> int | None:
    """Bytes that this process and its JVM hold in memory; None where the operating system does not tell by ``/proc``."""
    try:
        return _resident(os.getpid()) + _resident(_pid_of_jvm(spark))
    except OSError:
        return None


def _pid_of_jvm(spark: Any) -> int:
    # ProcessHandle is younger than Java 8.
    name = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getName()
    return int(name.split("@")[0])


def _resident(pid: int) -> int:
    with open("/proc/{}/statm".format(pid)) as file:
        return int(file.read().split()[1]) * _PAGE
