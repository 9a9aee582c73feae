"""Runs a broker until standard input ends, and removes it: also when whoever started this was killed.

``python kafka_guard.py FOLDER LOG COMMANDS``. ``FOLDER`` is removed; ``COMMANDS`` is a JSON list of commands, each a list. They run one
after another.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

_SECONDS_TO_END = 5


def main(folder: str, log: str, commands: list[list[str]]) -> int:
    """Exit code: that of the first command that fails, 137 if SIGKILL ends it; 0 once standard input has ended."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=_wait_for_end, args=(ended,), daemon=True).start()
    try:
        with Path(log).open("ab") as output:
            for command in commands:
                process = subprocess.Popen(
                    command, cwd=folder, env=os.environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
                try:
                    while not ended.is_set() and process.poll() is None:
                        ended.wait(0.1)
                finally:
                    if process.poll() is None:
                        process.kill()  # its data is removed, so there is nothing to save
                        process.wait(_SECONDS_TO_END)
                if ended.is_set():
                    return 0
                if process.returncode:
                    # As a shell has it, since an exit code is not negative.
                    return 128 - process.returncode if process.returncode < 0 else process.returncode
        return 0
    finally:
        if ended.is_set():
            shutil.rmtree(folder, ignore_errors=True)


def _wait_for_end(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
