"""Collects the rows of a micro-batch."""

from __future__ import annotations

import pickle
from typing import Any, Callable, List

Collect = Callable[[Any], List[Any]]
"""From the frame that ``foreachBatch`` is given to its rows."""


def collect(frame: Any) -> List[Any]:
    """As users do: Spark plans and announces an execution for the frame, which is done when its job is."""
    rows: List[Any] = frame.collect()
    return rows


def collect_in_the_execution(spark: Any) -> Collect:
    """Collect as a part of the micro-batch's execution: the same job and conversion, without an execution of its own around them.

    The frame only reads what the query has planned, so its first physical plan runs as it is. Returns ``collect`` for a Spark whose
    conversion to Python takes arguments that we do not know.
    """
    jvm = spark.sparkContext._jvm
    conversion = jvm.org.apache.spark.sql.execution.python.EvaluatePython
    more = _more_arguments(jvm, conversion)
    if more is None:
        return collect
    conversion.registerPicklers()
    new_list, new_pickler = jvm.java.util.ArrayList, jvm.net.razorvine.pickle.Pickler

    def collected(frame: Any) -> List[Any]:
        found = frame._jdf.queryExecution().sparkPlan().executeCollect()
        if not len(found):
            return []
        schema, rows = frame._jdf.schema(), new_list()
        for row in found:
            rows.add(conversion.toJava(row, schema, *more))
        # As pyspark reads what `collect` is sent.
        return list(pickle.loads(bytes(new_pickler().dumps(rows)), encoding="bytes"))

    return collected


def _more_arguments(jvm: Any, conversion: Any) -> Any:
    """What the conversion of a value takes besides the value and its type; None if it is not known.

    Up to 4.0 nothing, then whether binary values are ``bytes``, and since 4.3 a counter, or none, of what it pickles.
    """
    known = (
        ["java.lang.Object", "org.apache.spark.sql.types.DataType"],
        ["boolean"],
        ["scala.Option"],
    )
    arguments = (True, jvm.scala.Option.empty())
    for method in jvm.java.lang.Class.forName(conversion._fqn).getMethods():
        if method.getName() == "toJava":
            types = [one.getName() for one in method.getParameterTypes()]
            for most in range(len(known)):
                if types == sum(known[: most + 1], []):
                    return arguments[:most]
    return None
