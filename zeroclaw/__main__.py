"""`python -m zeroclaw`: also how a command starts another one with the same interpreter."""

from zeroclaw.cli import main

main()
