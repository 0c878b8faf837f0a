"""`python -m zeroclaw.cli`: how a command starts another one with the same interpreter."""

from zeroclaw.cli import main

main()
