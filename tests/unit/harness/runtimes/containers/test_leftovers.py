"""Who a container was made for, and whether that process still lives."""

import os
import subprocess
import sys

from harness.runtimes.containers.daemon import Owner


def test_labels_tell_the_owner_again():
    owner = Owner.new()
    assert Owner.read(owner.labels) == owner
    assert owner.run != Owner.new().run
    assert owner.filter == {"label": f"watermark-conformance.run={owner.run}"}


def test_a_process_of_this_machine_lives_or_does_not():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = Owner.new()
    assert here.is_alive() is True
    assert Owner(here.run, here.host, gone.pid).is_alive() is False
    assert Owner(here.run, here.host, os.getppid()).is_alive() is True


def test_the_liveness_of_a_process_of_another_machine_is_unknown():
    assert Owner("r", "another-host", 1).is_alive() is None


def test_labels_of_an_older_kind_are_read():
    assert Owner.read({"watermark-conformance.run": "r"}) == Owner("r", "", 0)
