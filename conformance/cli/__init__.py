"""The command line: each command parses its arguments, calls one function and renders what it gives."""

import signal


def program() -> None:
    """The console script: the command line as a process. Ctrl-C ends it without a traceback also while modules are imported and while the
    interpreter ends, when no command handles signals."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from conformance.cli.main import main

    main()
