"""The lines between the host and the driver, beside code that has its own ideas of input and output."""

import subprocess
import sys
from threading import Timer

PROGRAM = """
import multiprocessing, sys, threading
from harness.driver.serve import Channel

channel = Channel()
reader = threading.Thread(target=lambda: [channel.send("got", line=line) for line in channel.requests])
reader.start()
with multiprocessing.get_context("fork").Pool(1) as pool:
    (length,) = pool.map(len, ["ab"])
channel.send("answer", length=length, read=sys.stdin.read())
print("of the author")
"""


def test_a_process_that_code_forks_does_not_wait_for_the_input_of_the_driver() -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        (limit := Timer(60, process.kill)).start()
        try:
            assert process.stdout.readline() == '{"length":2,"read":"","kind":"answer"}\n'
            assert process.communicate("a request\n")[0] == '{"line":"a request\\n","kind":"got"}\n'
        finally:
            process.kill()
            limit.cancel()
