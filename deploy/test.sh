#!/bin/sh
# Every test that is not long, or those that the arguments choose.
#
#   deploy/test.sh WORKERS [ARGUMENTS OF PYTEST]
#
# Journeys and faults mostly wait for their daemons, so twice as many workers run them, after the
# others, of which some wait, too. Tests that are named by their path run together, as do all if the
# run ends with the first failure or begins with those that failed.
set -eu
cd "$(dirname "$0")/.."

workers=$1
[ "$workers" != auto ] || workers=$(nproc)
shift
trap 'exit 130' INT # else the second group would start

for argument; do
    case $argument in
    tests | *tests/* | -x | --exitfirst | --lf | --ff) exec .venv/bin/python -m pytest -n "$workers" "$@" ;;
    esac
done

none=5 # pytest's code where a group has none of the chosen tests
first=0
second=0
.venv/bin/python -m pytest -n "$((workers + 1))" --ignore=tests/journeys --ignore=tests/faults "$@" || first=$?
.venv/bin/python -m pytest -n "$((workers * 2))" tests/journeys tests/faults "$@" || second=$?
[ $first = 0 ] || [ $first = $none ] || exit $first
[ $second = $none ] || exit $second
exit $first
