#!/bin/sh
# Run every test under coverage and hold the product to its two floors.
#
# The floor of the whole stands in pyproject.toml; rooms that decide must be covered
# to the last branch. The faults come after, without coverage: they start the daemon hundreds of
# times over code that the others have covered. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

bin=.venv/bin
failed=0 # whatever fails, all of it is shown
$bin/coverage erase
$bin/coverage run -m pytest --ignore tests/faults "$@" || failed=1
$bin/coverage combine --quiet
$bin/python -m pytest tests/faults "$@" || failed=1
$bin/coverage report || failed=1
$bin/coverage report --fail-under=100 --include "$($bin/python deploy/pure_rooms.py)" || failed=1
exit $failed
