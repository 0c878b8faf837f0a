"""The program `zeroclaw`: loads the commands and runs them.

It stands beside the package, because loading anything of that takes up to half a second, in which
Ctrl-C would print a traceback.
"""

import signal


def main() -> None:
    """Run the command line; while it loads, Ctrl-C ends the process as the system does."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # a program in the background ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from zeroclaw.cli import main as run

    signal.signal(signal.SIGINT, handler)
    run()
