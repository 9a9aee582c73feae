"""The labels by which what a run made is found again, and whether the run still lives."""

from __future__ import annotations

import os
import platform
import uuid
from dataclasses import dataclass
from typing import Any

RUN = "watermark-conformance.run"
HOST = "watermark-conformance.host"
PROCESS = "watermark-conformance.process"


@dataclass(frozen=True)
class Owner:
    """The process a container or a volume was made for."""

    run: str
    """Different for every run."""
    host: str
    process: int

    @classmethod
    def new(cls) -> Owner:
        """This process, in a new run."""
        return cls(uuid.uuid4().hex[:12], platform.node(), os.getpid())

    @classmethod
    def read(cls, labels: dict[str, Any]) -> Owner:
        """From the labels of something found."""
        process = str(labels.get(PROCESS, ""))
        return cls(str(labels[RUN]), str(labels.get(HOST, "")), int(process) if process.isdigit() else 0)

    @property
    def labels(self) -> dict[str, str]:
        return {RUN: self.run, HOST: self.host, PROCESS: str(self.process)}

    @property
    def filter(self) -> dict[str, str]:
        """Finds what belongs to this run."""
        return {"label": f"{RUN}={self.run}"}

    def lives(self) -> bool | None:
        """Whether its process is still there; None where only another machine can say."""
        if self.host != platform.node():
            return None
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
