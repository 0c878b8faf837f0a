"""The composition root: every room opened and wired, and the daemon's life from start to end."""

from zeroclaw.daemon.foundation import Openers, ReadyFacts, Start
from zeroclaw.daemon.life import run, serve

__all__ = ["Openers", "ReadyFacts", "Start", "run", "serve"]
