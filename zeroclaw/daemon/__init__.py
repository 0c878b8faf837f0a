"""The composition root: opens and wires every room, and runs the daemon from start to end."""

from zeroclaw.daemon.foundation import Openers, ReadyFacts, Start
from zeroclaw.daemon.life import run, serve

__all__ = ["Openers", "ReadyFacts", "Start", "run", "serve"]
