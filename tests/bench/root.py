"""The daemon as `zeroclaw run` starts it, and it tells what its store has written when asked.

Run as `python -m tests.bench.root CONFIG`; at SIGUSR1 it prints the store's statistics, one line.
"""

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

from zeroclaw import daemon
from zeroclaw.channel import ChannelLog
from zeroclaw.cli.configuration import load, start_of
from zeroclaw.clock import Clock
from zeroclaw.codec import encode
from zeroclaw.host import logs
from zeroclaw.store import Store
from zeroclaw.stores.sqlite import open_store


def main(config: Path) -> None:
    """Run the daemon until it is told to stop."""

    async def store(directory: Path, *, clock: Clock, log: ChannelLog) -> Store:
        opened = await open_store(directory, clock=clock, log=log)

        def tell() -> None:
            print(encode(opened.statistics()).decode(), flush=True)

        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, tell)
        return opened

    def ready(_facts: daemon.ReadyFacts) -> None:
        gc.freeze()  # as `zeroclaw run` does
        print("zeroclaw is ready", flush=True)

    start = start_of(load(config), os.environ)
    stop_logging = logs.set_up(redact=start.checked.redactor.redact)
    try:
        daemon.run(start, on_ready=ready, openers=daemon.Openers(store=store))
    finally:
        stop_logging()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
