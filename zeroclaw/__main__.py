"""`python -m zeroclaw`; commands also use it to start one another with the same interpreter."""

from zeroclaw.cli import main

main()
