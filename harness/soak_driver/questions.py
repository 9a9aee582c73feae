"""The laws' questions, put to the tables."""

from __future__ import annotations

from typing import Any, Dict

from harness.driver.channel import Channel

from .tables import register


def answer(spark: Any, request: Dict[str, Any], channel: Channel) -> None:
    """Answer each question with its first rows."""
    register(spark, request["folder"], request["stream"], request["late"])
    for question in request["questions"]:
        frame = spark.sql(question["sql"])
        rows = frame.limit(question["most"]).collect()
        channel.send("rows", name=question["name"], columns=frame.columns, rows=[list(row) for row in rows])
