#!/bin/sh
# The one gate: lint, layers, types, every test that is not long, and the floors of coverage.
#
#   deploy/check.sh WORKERS
#
# Coverage is measured where rooms are tested by themselves: the floor of the whole stands in
# pyproject.toml, and rooms that decide must be covered to the last branch. Journeys and faults start
# the daemon hundreds of times over code that those have covered, so they run at full speed; they
# wait more than they work, so twice as many run at once. The types are checked beside the former,
# and the coverage is beside the latter. Whatever fails, all of it is shown.
set -eu
cd "$(dirname "$0")/.."

bin=.venv/bin
workers=$1
failed=0
coverage=

$bin/ruff check . || failed=1
$bin/ruff format --check . || failed=1
$bin/lint-imports || failed=1

covered() {
    whole=0
    $bin/coverage combine --quiet
    $bin/coverage report || whole=1
    $bin/coverage report --fail-under=100 --include "$($bin/python deploy/pure_rooms.py)"
    return $whole
}

said=$(mktemp -d)
$bin/basedpyright >"$said/types" 2>&1 &
types=$!
trap 'kill $types $coverage 2>/dev/null || true; rm -rf "$said"' EXIT

$bin/coverage erase
$bin/coverage run -m pytest -n "$workers" tests/unit tests/spec tests/contract tests/emulators || failed=1
covered >"$said/coverage" 2>&1 &
coverage=$!
$bin/python -m pytest -n "$((workers * 2))" tests/journeys tests/faults || failed=1

wait $types || failed=1
wait $coverage || failed=1
cat "$said/types" "$said/coverage"
exit $failed
