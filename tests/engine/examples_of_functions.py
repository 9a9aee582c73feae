"""Prints the examples that Spark's own documentation gives of its functions and operators, and whether this Spark accepts each, as JSON.

Runs on the pyspark of the Python that runs it: the examples are those of ``ExpressionDescription``.
"""

from __future__ import annotations

import json
import re

from pyspark.sql import SparkSession

EXAMPLE = re.compile(r"^\s*> (.*?);\s*$", re.MULTILINE | re.DOTALL)


def described(spark: SparkSession, name: str) -> str:
    try:
        lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()
    except Exception:  # a name that is no word must be quoted, an operator must not
        lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
    return "\n".join(line[0] for line in lines)


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    accepted = {}
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        for example in EXAMPLE.findall(described(spark, name)):
            try:
                spark.sql(example)
                accepted[example] = True
            except Exception:  # each release has errors of its own
                accepted[example] = False
    print(json.dumps(accepted))
    spark.stop()


if __name__ == "__main__":
    main()
