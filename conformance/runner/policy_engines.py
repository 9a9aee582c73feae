"""Cases on watermark policies on the engines whose policies they are: which engines, and what they answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from conformance.policies.case import PolicyCase
from conformance.policies.replay import PolicyAnswer
from harness.environments.jars import NoJar
from harness.policy_engines import running
from harness.policy_engines.running import ALL, PolicyEngine, select
from reports.analysis.policy_columns import PolicyColumn, engine_target


@dataclass(frozen=True)
class ChosenEngines:
    """The engines of a run."""

    engines: tuple[PolicyEngine, ...] = ()
    absent: str | None = None
    """Why none of them runs on this machine."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the choice."""
        if self.absent is None:
            return ()
        return (f"the columns of {', '.join(one.title for one in self.engines)} stay empty: {self.absent}",)


def choose(names: Sequence[str]) -> ChosenEngines:
    """The engines with these names. With ``all``, a machine without a JDK has empty columns.

    Raises:
        WrongUsage: no engine has one of the names.
        NoSuchJava, BadJavaOptions: engines were named, and this machine has no JDK for them.
    """
    engines = select(names)
    obstacle = running.obstacle() if engines else None
    if obstacle is None:
        return ChosenEngines(engines)
    if ALL not in names:
        raise obstacle
    return ChosenEngines(engines, " ".join(str(obstacle).split()))


def columns(chosen: ChosenEngines, cases: Sequence[PolicyCase]) -> tuple[PolicyColumn, ...]:
    """What each engine answers to the cases on its policies; several engines run at once."""
    if chosen.absent is not None:
        return tuple(_column(engine, absent=chosen.absent) for engine in chosen.engines)
    with ThreadPoolExecutor(max(1, min(len(chosen.engines), os.cpu_count() or 1))) as pool:
        return tuple(pool.map(lambda engine: _asked(engine, cases), chosen.engines))


def _asked(engine: PolicyEngine, cases: Sequence[PolicyCase]) -> PolicyColumn:
    own = [case for case in cases if engine.has(case.policy, case.given)]
    answers: dict[str, PolicyAnswer] = {}
    if not own:
        return _column(engine)
    try:
        with running.started(engine) as real:
            for case in own:
                answers[case.id] = real.answer(case.question)
            return _column(engine, answers, java=real.java.version)
    except NoJar as error:
        return _column(engine, absent=" ".join(str(error).split()))
    except running.PolicyEngineFailed as error:
        # What it answered before stands; the rest it did not answer.
        left = {case.id: " ".join(str(error).split()) for case in own if case.id not in answers}
        return _column(engine, answers, left)


def _column(
    engine: PolicyEngine,
    answers: dict[str, PolicyAnswer] | None = None,
    broken: dict[str, str] | None = None,
    *,
    absent: str | None = None,
    java: str | None = None,
) -> PolicyColumn:
    return PolicyColumn(
        engine_target(engine.name, java), engine.title, engine.decides, answers or {}, broken or {}, absent
    )
