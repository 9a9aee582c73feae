"""What the machine around the driver is: where its pyspark lies, and what operating system it has."""

from __future__ import annotations

import glob
import os
import platform
import sys
from importlib.util import find_spec


def find_pyspark() -> None:
    """Make the pyspark of an unpacked Spark importable, as Spark's own ``bin/pyspark`` does, where none is installed.

    Images carry Spark in ``SPARK_HOME`` or ``/opt/spark`` and set no ``PYTHONPATH``.
    """
    if find_spec("pyspark") is not None:
        return
    home = os.environ.get("SPARK_HOME") or "/opt/spark"
    sys.path[1:1] = [home + "/python", *glob.glob(home + "/python/lib/py4j-*-src.zip")]
    if find_spec("pyspark") is None:
        raise ImportError("there is no pyspark: not for {}, and not in {}/python".format(sys.executable, home))


def operating_system() -> str:
    """``Debian GNU/Linux 12 (bookworm), Linux 6.1.0``."""
    kernel = "{} {}".format(platform.system(), platform.release())
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            said = dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)
        return "{}, {}".format(said["PRETTY_NAME"].strip('"'), kernel)
    except (OSError, KeyError):
        return kernel
