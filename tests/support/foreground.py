"""Programs that a test starts as a terminal would."""

import signal


def in_the_foreground():
    """For ``preexec_fn``: a shell lets what it starts in the background ignore Ctrl-C, and the test run's own programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
