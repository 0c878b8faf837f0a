#!/bin/sh
# Run the fast tests on the system's own Python, in an environment within .venv.
#
#   deploy/system_python.sh WORKERS    SYSTEM_PYTHON names another interpreter
#
# Debian stays on one patch release for years, 3.11.2 in Debian 12, and its `re` and `asyncio` have
# bugs that newer releases have fixed. Without such a Python, or with one that is too old, the tests
# are skipped; in CI that is a failure.
set -eu
cd "$(dirname "$0")/.."

export VENV=.venv/system PYTHON="${SYSTEM_PYTHON:-/usr/bin/python3}"
say() { printf 'system python: %s\n' "$1"; }

if [ "$("$PYTHON" --version 2>&1)" = "$(.venv/bin/python --version)" ]; then
    say 'nothing to do: .venv, in which all tests run, uses it'
    exit
fi
if ! sh deploy/setup.sh dev; then
    say 'skipped, for the reason above'
    [ "${CI:-}" != true ]
    exit
fi
say "$($VENV/bin/python -c 'import sqlite3, ssl, sys
print("Python", *sys.version.split()[:1], "SQLite", sqlite3.sqlite_version, ssl.OPENSSL_VERSION)')"
exec $VENV/bin/python -m pytest -n "$1" --hypothesis-profile=quick -m "not slow" tests/unit tests/spec
