"""Digests of rows of every type; runs inside an engine's Python.

Writes JSON to the file that is named: the types and the pairs of different multisets of rows that have one digest.
"""

import itertools
import json
import os
import random
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from harness.driver.capture import digest

# Type → values in SQL, all different.
VALUES = {
    "STRING": ["''", "'n'", "'a'", "'a,b'", "'null'"],
    "INT": ["0", "1", "-1"],
    "BIGINT": ["0", "42"],
    "BOOLEAN": ["true", "false"],
    "DOUBLE": ["0", "-0d", "'NaN'", "1.5", "'Infinity'"],
    "FLOAT": ["0", "-0d", "'NaN'", "1.5"],
    "DECIMAL(20,2)": ["0", "1.25", "125"],
    "DATE": ["'2026-03-01'", "'1969-12-31'"],
    "TIMESTAMP": ["'2026-10-25 00:30:00.000001Z'", "'2026-10-25 01:30:00.000001Z'", "'2026-10-25 00:30:00Z'"],
    "BINARY": ["X''", "X'00'", "X'0000'"],
    "ARRAY<INT>": ["array()", "array(null)", "array(1)", "array(1, null)", "array(null, 1)"],
    "ARRAY<ARRAY<STRING>>": [
        "array()",
        "array(array())",
        "array(array(), array())",
        "array(array('a', 'b'))",
        "array(array('a'), array('b'))",
        "array(array('a,b'))",
    ],
    "STRUCT<a: INT, A: INT>": ["struct(null, null)", "struct(1, null)", "struct(null, 1)"],
    "ARRAY<STRUCT<a: STRING, b: ARRAY<INT>>>": [
        "array()",
        "array(null)",
        "array(struct(null, null))",
        "array(struct(null, array()))",
        "array(struct('a', array(null)))",
    ],
    "MAP<STRING, INT>": ["map()", "map('a', null)", "map('a', 1)", "map('a', 1, 'b', 2)", "map('a', 2, 'b', 1)"],
    "MAP<STRUCT<a: STRING, b: STRING>, ARRAY<INT>>": [
        "map()",
        "map(struct('a', null), array())",
        "map(struct(null, 'a'), array())",
        "map(struct('a, b', 'c'), null)",
        "map(struct('a', 'b, c'), null)",
    ],
}
OF_4 = {
    "STRING COLLATE UTF8_LCASE": ["'a'", "'A'"],
    "VARIANT": ["parse_json('1')", "parse_json('\"1\"')", "parse_json('null')", "parse_json('{\"a\": [1]}')"],
    "TIMESTAMP_NTZ": ["'2026-10-25 02:30:00'", "'2026-10-25 02:30:00.000001'"],
    "INTERVAL DAY TO SECOND": ["INTERVAL '1' DAY", "INTERVAL '2' DAY"],
}


def main(out, seed, draws):
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.conf.set("spark.sql.caseSensitive", "true")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    types = {**VALUES, **(OF_4 if spark.version >= "4" else {})}
    draw, equal = random.Random(seed), []

    def digests(multisets, columns):
        by_digest = {}
        for rows in multisets:
            shown = [
                "SELECT {}".format(", ".join(f"CAST({v} AS {t}) AS c" for v, t in zip(row, columns)))  # noqa: B905
                for row in rows
            ]
            (one,) = digest(spark.sql(" UNION ALL ".join(shown)))
            other = by_digest.setdefault(tuple(one), sorted(rows))
            if other != sorted(rows):
                equal.append([columns, other, rows])

    for type, values in types.items():
        digests([[(value,)] for value in ["null", *values]], [type])
    for first, second in itertools.islice(itertools.cycle(itertools.combinations(types, 2)), draws):
        # Two columns, two rows: what moves from a column, or from a row, to another.
        values = [draw.choice(["null", *types[type]]) for type in (first, second) for _ in "12"]
        one, two, three, four = values
        digests([[(one, three), (two, four)], [(one, four), (two, three)], [(one, three)]], [first, second])
    swapped = [[("'a'", "null")], [("null", "'a'")]]
    digests(swapped, ["STRING", "STRING"])

    Path(out).write_text(json.dumps(equal), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
