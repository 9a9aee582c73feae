"""An engine with a driver in it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from itertools import count

from conformance.core.observation import Interrupted, Observation, StepSeen
from harness.engine.connection import DriverConnection
from harness.engine.dispatcher import Mailbox
from harness.engine.engine import EngineFailed, EngineLocation, ExecutorsLost, KillMissed
from harness.engine.path_redaction import redact_paths
from harness.engine.protocol import CaseRequest, Done, Emitted, Reached, StepAnswer
from harness.engine.transport import Transport
from harness.errors import HarnessError

ANSWERED_BEFORE_FINISH = 5
"""Cases after which an engine has loaded most of what any engine loads."""


class DriverEngine:
    """An ``Engine``; ``observe`` may be called from several threads at once, each with another case.

    Args:
        transport: to a driver that was just started; owned by the engine from here on.
        work: the engine's directory on its own file system.
        cases: where cases get their directories; by default a directory in ``work``.
        place: where it runs.
        code: folders of the modules that ``call`` names; None if the user did not allow code.
        kafka: the broker for topics, or why there is none; None if it was started for cases that read no topics.
        start_timeout: seconds until the driver must have introduced itself.
        redact: removes secrets from a text.
        finish: called once, before the driver is ended, if it has answered some cases and runs none.

    Raises:
        EngineFailed: the driver did not introduce itself, or speaks another version of the protocol.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        work: str,
        cases: str | None = None,
        place: EngineLocation,
        code: tuple[str, ...] | None = None,
        kafka: str | HarnessError | None = None,
        start_timeout: float,
        redact: Callable[[str], str] = str,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self.place = place
        self.code = code
        self.kafka = kafka
        self.memory: int | None = None
        self._work = work
        self._cases = cases or f"{work}/cases"
        self._numbers = count(1)
        self._finish = finish
        self._counting = threading.Lock()
        self._running = self._answered = 0
        remote = {"master": place.master} if place.runtime == "connect" and place.master else {}
        self._connection = DriverConnection(transport, start_timeout=start_timeout, redact=redact, **remote)
        self.identity = self._connection.hello.identity
        self.slots = self._connection.hello.slots

    @property
    def ended(self) -> bool:
        return self._connection.ended

    def new_directory(self, case: str) -> str:
        return f"{self._cases}/{next(self._numbers)}-{re.sub(r'[^A-Za-z0-9]+', '-', case)[-60:]}"

    def observe(self, request: CaseRequest, *, step_timeout: float) -> Observation:
        steps: list[StepSeen] = []
        emitted: list[Interrupted] = []
        with self._counting:
            self._running += 1
        try:
            with self._connection.conversation(request.case, request) as mailbox:
                seen = self._follow(request, mailbox, step_timeout, steps, emitted)
        except EngineFailed as error:
            error.steps, error.emitted = tuple(steps), tuple(emitted)
            raise
        else:
            with self._counting:
                self._answered += 1
            return seen
        finally:
            with self._counting:
                self._running -= 1

    def _follow(
        self,
        request: CaseRequest,
        mailbox: Mailbox,
        step_timeout: float,
        steps: list[StepSeen],
        emitted: list[Interrupted],
    ) -> Observation:
        names = {request.directory: "<case>", self._work: "<engine>"}
        deadline = time.monotonic() + step_timeout
        while True:
            number = request.first + len(steps)
            doing = (
                f"step {number} of {request.case}" if len(steps) < len(request.steps) else f"the end of {request.case}"
            )
            answer = self._connection.next_answer(mailbox, step_timeout, doing, deadline=deadline)
            if getattr(answer, "case", None) != request.case:
                raise self._connection.unexpected(answer, doing)
            match answer:
                case StepAnswer(step=step) if len(steps) < len(request.steps):
                    steps.append(redact_paths(step, names))
                    deadline = time.monotonic() + step_timeout
                case Emitted(batch=batch, rows=rows):
                    emitted.append(Interrupted(id=batch, rows=rows))
                case Reached(step=step, columns=columns, missed=missed, executors_lost=lost):
                    self.kill()
                    _check_executors(lost, request)
                    if missed:
                        raise KillMissed(f"the engine was killed too late at {doing}")
                    steps.append(_with_interrupted_batch(step, emitted))
                    return Observation.of(request.case, columns, tuple(steps))
                case Done(columns=columns, memory=memory, executors_lost=lost):
                    self.memory = memory
                    _check_executors(lost, request)
                    if steps and steps[-1].error is not None:
                        steps[-1] = _with_interrupted_batch(steps[-1], emitted)
                    return Observation.of(request.case, columns, tuple(steps))
                case other:
                    raise self._connection.unexpected(other, doing)

    def kill(self) -> None:
        self._connection.kill()

    def close(self) -> None:
        finish, self._finish = self._finish, None
        try:
            if finish and self._answered >= ANSWERED_BEFORE_FINISH and not self._running and not self.ended:
                finish()
        finally:  # it may take long enough for a Ctrl-C
            self._connection.close()


def _check_executors(lost: int, request: CaseRequest) -> None:
    if lost:
        raise ExecutorsLost(f"the cluster lost {lost} of its executors while {request.case} ran")


def _with_interrupted_batch(step: StepSeen, emitted: list[Interrupted]) -> StepSeen:
    """The step in which the engine was killed or the query failed, with the micro-batch that had emitted its rows and was not committed."""
    last = emitted[-1] if emitted else None
    uncommitted = last is not None and all(batch.id != last.id for batch in step.batches)
    return step.model_copy(update={"interrupted": last}) if uncommitted else step
