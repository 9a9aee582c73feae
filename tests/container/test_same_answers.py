"""The suite in containers, and that it sees there what it sees on this machine.

Every sixteenth case, unless ``CONFORMANCE_SHARD`` says otherwise: ``1/1`` is the whole suite.
"""

import os

from tests.container.conftest import ROOT, image_of

VERSIONS = ("3.3.4", "3.5.9", "4.3.0")
ALSO_HERE = ("3.5.9", "4.3.0")


def chosen(versions):
    return [argument for version in versions for argument in ("--spark", version)]


def test_the_suite_gives_the_same_answers_in_containers(daemon, conformance, capfd):
    for version in VERSIONS:
        image_of(daemon, version)
    which = str(ROOT / "cases"), "--shard", os.environ.get("CONFORMANCE_SHARD", "1/16")
    container = conformance("run", *which, *chosen(VERSIONS), "--runtime", "container", "--output", "container.jsonl")
    here = conformance("run", *which, *chosen(ALSO_HERE), "--output", "local.jsonl")
    assert container.code == 0, container.out
    assert here.code == 0, here.out
    compared = conformance("diff", "local.jsonl", "container.jsonl")
    with capfd.disabled():
        for run in (container, here, compared):
            print(f"\n{run.out.strip().splitlines()[-1]}")
    assert compared.code == 0, compared.out
    assert " 0 different" in compared.out
