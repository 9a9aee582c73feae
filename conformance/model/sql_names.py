"""The names of the model for the operators and functions of Spark SQL, by what sqlglot makes of them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.And: "and",
    exp.Or: "or",
    exp.Div: "/",
    exp.Like: "like",
    exp.DPipe: "concat",
}
AGGREGATE_FUNCTIONS: Mapping[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.StddevPop: "stddev_pop",
    exp.Stddev: "stddev",
    exp.Variance: "variance",
    exp.Median: "median",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ArrayUniqueAgg: "collect_set",
    exp.First: "first",
    exp.Last: "last",
    exp.ArrayAgg: "collect_list",
    exp.CountIf: "count_if",
    exp.ApproxQuantile: "percentile_approx",
}
CALLS: Mapping[type[exp.Expr], str] = {
    exp.Coalesce: "coalesce",
    exp.Length: "length",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.ArraySort: "array_sort",
    exp.Rand: "rand",
    exp.Randn: "randn",
    exp.Uuid: "uuid",
    exp.Abs: "abs",
    exp.Concat: "concat",
}
CASTS: Mapping[str, str] = {
    "TIMESTAMPTZ": "cast to timestamp",
    "TIMESTAMP": "cast to timestamp",
    "TIMESTAMPNTZ": "cast to timestamp_ntz",
    "TEXT": "cast to string",
    "INT": "cast to int",
    "BIGINT": "cast to bigint",
    "DOUBLE": "cast to double",
    "FLOAT": "cast to float",
}
