"""The table of all jobs: what plain PySpark does, what ``conformance check`` says. python -m tests.engine.jobs FOLDER [PART OF A NAME …]

What is in the folder is not asked again, so that a run may be stopped and goes on.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.engine.jobs.agreement import Answer, check, disagreements, shown_answer, shown_plain
from tests.engine.jobs.catalogue import AFTERS, BEFORE, JOBS, Job
from tests.engine.jobs.plain import Plain, PlainSpark

AT_A_TIME = 50
"""Jobs for which a JVM of each version starts."""


def main(folder: Path, parts: Sequence[str]) -> int:
    jobs = [job for job in JOBS if not parts or any(part in job.name for part in parts)]
    wrong = 0
    for at in range(0, len(jobs), AT_A_TIME):
        some = jobs[at : at + AT_A_TIME]
        plain = _plain(some, folder)
        for job in some:
            for after in AFTERS:
                seen, answer = plain[job.name, after], _answer(job, after, folder)
                differences = [*disagreements(seen, answer)]
                wrong += bool(differences)
                verdict = "; ".join(differences) or "agree"
                print(
                    f"| {job.name} | {after} | {shown_plain(seen)} | {shown_answer(answer)} | {verdict} |", flush=True
                )
    print(f"{wrong} of {len(jobs) * len(AFTERS)} do not agree")
    return 1 if wrong else 0


def _plain(jobs: Sequence[Job], folder: Path) -> dict[tuple[str, str], Plain]:
    kept = {job.name: folder / f"{job.file_name}.plain" for job in jobs}
    missing = [job for job in jobs if not kept[job.name].exists()]
    if missing:
        answers = PlainSpark(folder / "plain").compare(missing, BEFORE, AFTERS)
        for job in missing:
            kept[job.name].write_bytes(pickle.dumps({after: answers[job.name, after] for after in AFTERS}))
    return {
        (name, after): seen for name, file in kept.items() for after, seen in pickle.loads(file.read_bytes()).items()
    }


def _answer(job: Job, after: str, folder: Path) -> Answer:
    kept = folder / f"{job.file_name}-{after}.json"
    if not kept.exists():
        kept.write_text(json.dumps(check(job, BEFORE, after, folder / "check" / f"{job.file_name}-{after}")))
    answer: Answer = json.loads(kept.read_text())
    return answer


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), sys.argv[2:]))
