"""Rows of a real source as a sample, with the values of some columns replaced."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Sequence
from decimal import Decimal

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.wording import unknown
from conformance.own_job.written_time import json_object

_DIGITS = 9
"""A number that is replaced has at most so many digits, which a column of INT holds."""


class Mask:
    """Replaces texts and whole numbers, equal by equal in all samples, so that joins and groups stay; the key is kept nowhere.

    How often a value occurs, and how many digits a number has, can still be seen; numbers of few digits may get the same replacement.
    """

    def __init__(self) -> None:
        self._key = os.urandom(32)

    def rows(self, source: str, lines: Iterable[str], columns: Sequence[str]) -> str:
        """The rows, each a JSON object, as JSON lines with the values of these columns replaced.

        The columns of a record of Kafka may be those of the JSON object in its ``value``. Raises WrongUsage: a row lacks the column, or its
        value is neither text nor a whole number.
        """
        return "".join(
            json.dumps(self._row(source, json.loads(line), columns), ensure_ascii=False) + "\n" for line in lines
        )

    def _row(self, source: str, row: dict[str, Json], columns: Sequence[str]) -> dict[str, Json]:
        for column in columns:
            if column in row:
                row[column] = self._value(f"{source}.{column}", row[column])
                continue
            within = json_object(row.get("value")) or {}
            if column not in within:
                raise WrongUsage(f"--mask: {unknown('column', column, [*row, *within], where=f' of {source}')}")
            within[column] = self._value(f"{source}.{column}", within[column])
            row["value"] = json.dumps(within, ensure_ascii=False, default=float)
        return row

    def _value(self, column: str, value: Json) -> Json:
        if value is None:
            return None
        digest = hmac.new(self._key, json.dumps(value, default=float).encode(), hashlib.sha256)
        if isinstance(value, str):
            return f"masked-{digest.hexdigest()[:12]}"
        if isinstance(value, int) and not isinstance(value, bool):
            most = 10 ** min(len(str(abs(value))), _DIGITS)
            return int.from_bytes(digest.digest(), "big") % most
        raise WrongUsage(f"--mask: {column} has {_KINDS[type(value)]}; only texts and whole numbers can be replaced")


_KINDS = {bool: "a boolean", float: "a fraction", Decimal: "a fraction", list: "an array", dict: "an object"}
"""What an error says of a value, which it does not show."""
