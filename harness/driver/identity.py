"""What the driver tells the host about the engine it runs in."""

from __future__ import annotations

import platform
from typing import Any, Dict

from . import PROTOCOL

_APIS = {
    "dropDuplicatesWithinWatermark": "DataFrame",
    "applyInPandasWithState": "GroupedData",
    "transformWithState": "GroupedData",
    "transformWithStateInPandas": "GroupedData",
}
"""Methods that not every version has, and their classes."""


def identity(spark: str, scala: str, java: str, classes: Dict[str, type]) -> Dict[str, Any]:
    """The fields of the protocol's ``Identity``. ``classes``: the ``DataFrame`` and ``GroupedData`` of this client, by name."""
    return {
        "protocol": PROTOCOL,
        "spark": spark,
        "scala": scala,
        "java": java,
        "python": platform.python_version(),
        "os": _operating_system(),
        "apis": sorted(name for name, holder in _APIS.items() if hasattr(classes[holder], name)),
    }


def _operating_system() -> str:
    """``Debian GNU/Linux 12 (bookworm), Linux 6.1.0``."""
    kernel = "{} {}".format(platform.system(), platform.release())
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            fields = dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)
        return "{}, {}".format(fields["PRETTY_NAME"].strip('"'), kernel)
    except (OSError, KeyError):
        return kernel
