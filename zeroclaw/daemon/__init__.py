"""The composition root: every room opened and wired, and the daemon's life from start to end."""

from zeroclaw.daemon.life import run, serve
from zeroclaw.daemon.parts import Openers, ReadyFacts, Start

__all__ = ["Openers", "ReadyFacts", "Start", "run", "serve"]
