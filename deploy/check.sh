#!/bin/sh
# The gate: lint, layers, types, every test that is not long, and the minimum coverage.
#
#   deploy/check.sh WORKERS
#
# The unit, spec, contract and emulator tests measure coverage: the minimum for all code is in
# pyproject.toml, and the pure rooms need every branch. Journeys and faults start the daemon hundreds
# of times over the same code, so they run without measuring; they mostly wait, so twice as many
# workers run them. The types are checked while the first group runs, the coverage while the second
# does. All steps run even if one fails.
set -eu
cd "$(dirname "$0")/.."

bin=.venv/bin
workers=$1
[ "$workers" != auto ] || workers=$(nproc)
failed=0
coverage=

$bin/ruff check . || failed=1
$bin/ruff format --check . || failed=1
$bin/lint-imports || failed=1

check_coverage() {
    status=0
    $bin/coverage combine --quiet
    $bin/coverage report || status=1
    $bin/coverage report --fail-under=100 --include "$($bin/python deploy/pure_rooms.py)"
    return $status
}

output=$(mktemp -d)
$bin/basedpyright >"$output/types" 2>&1 &
types=$!
trap 'kill $types $coverage 2>/dev/null || true; rm -rf "$output"' EXIT

$bin/coverage erase
$bin/coverage run -m pytest -n "$workers" tests/unit tests/spec tests/contract tests/emulators || failed=1
check_coverage >"$output/coverage" 2>&1 &
coverage=$!
$bin/python -m pytest -n "$((workers * 2))" tests/journeys tests/faults || failed=1

wait $types || failed=1
wait $coverage || failed=1
cat "$output/types" "$output/coverage"
exit $failed
