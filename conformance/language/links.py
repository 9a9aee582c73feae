"""Links: a ticket of Spark's, or a URL."""

from __future__ import annotations

from conformance.language.shape import Text

LINK = Text("a ticket (SPARK-18124) or a URL (https://…)", r"^(SPARK-[0-9]+|https?://[^\s/]+\.\S+)$")
