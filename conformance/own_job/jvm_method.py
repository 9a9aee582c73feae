"""One's own method of a jar, which makes a DataFrame of DataFrames: a static one, or one of a Scala object."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.core.errors import WrongUsage
from conformance.core.wording import unknown
from conformance.own_job.job_case import OwnQuery, own_function
from harness.runtimes.own_code import Jar

_METHOD = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+", re.ASCII)


def function_or_method(text: str, output_mode: str, jars: Sequence[Jar]) -> OwnQuery:
    """The query of ``module:function`` or of ``package.Class.method`` of the jars; WrongUsage if it is neither, or no jar has it."""
    if ":" in text or not (jars or _METHOD.fullmatch(text)):
        return own_function(text, output_mode)
    if not jars:
        raise WrongUsage(
            f"{text!r} is not a function, which is module:function; if it is a method of Java or Scala, --jar is missing"
        )
    if _METHOD.fullmatch(text) is None:
        raise WrongUsage(f"{text!r} is neither package.Class.method of a jar nor module:function")
    check_class(text.rpartition(".")[0], jars)
    return OwnQuery(text, {"jvm": text}, text, output_mode)


def check_class(name: str, jars: Sequence[Jar]) -> None:
    """Raise WrongUsage unless the jars for every version of Scala have a class."""
    wanted: list[str | None] = [*{jar.scala for jar in jars if jar.scala}] or [None]
    for scala in wanted:
        fitting = [jar for jar in jars if jar.scala in (None, scala)]
        if not any(name in jar.classes() for jar in fitting):
            classes = sorted(set().union(*(jar.classes() for jar in fitting)))
            raise WrongUsage(f"{', '.join(str(jar.path) for jar in fitting)}: {unknown('class', name, classes)}")
