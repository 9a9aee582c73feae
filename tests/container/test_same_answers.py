"""The suite in containers gives the same answers as on this machine.

Every sixteenth case, in a full run. ``CONFORMANCE_SHARD=1/1`` is the whole suite.
"""

import os

from tests.container.conftest import ROOT, image_of
from tests.support.effort import full_run_only

VERSIONS = ("3.5.9", "4.3.0")


def chosen(versions):
    return [argument for version in versions for argument in ("--spark", version)]


@full_run_only
def test_the_suite_gives_the_same_answers_in_containers(daemon, conformance, capfd):
    for version in VERSIONS:
        image_of(daemon, version)
    which = str(ROOT / "cases"), "--shard", os.environ.get("CONFORMANCE_SHARD") or "1/16"
    container = conformance("run", *which, *chosen(VERSIONS), "--runtime", "container", "--output", "container.jsonl")
    here = conformance("run", *which, *chosen(VERSIONS), "--output", "local.jsonl")
    assert container.code == 0, container.out
    assert here.code == 0, here.out
    compared = conformance("maintain", "diff", "local.jsonl", "container.jsonl")
    with capfd.disabled():
        for run in (container, here, compared):
            print(f"\n{run.out.splitlines()[0]}")
    assert compared.code == 0, compared.out
    assert " 0 different" in compared.out
