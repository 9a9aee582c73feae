"""JSON lines over standard input and output."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, Dict, Iterator


class Channel:
    """Owns the real standard output; other output (of the JVM, pyspark, a user's function) goes to standard error."""

    def __init__(self) -> None:
        self._sending = threading.Lock()
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    def requests(self) -> Iterator[Dict[str, Any]]:
        """Yield each request until the host closes our standard input."""
        for line in sys.stdin:
            yield json.loads(line)

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message of a kind. Safe to call from several threads."""
        fields["kind"] = kind
        line = json.dumps(fields, separators=(",", ":")) + "\n"
        with self._sending:
            self._out.write(line)
            self._out.flush()
