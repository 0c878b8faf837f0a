#!/bin/sh
# Run every test under coverage and hold the product to its two floors.
#
# The floor of the whole stands in pyproject.toml; rooms that decide must be covered
# to the last branch. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

bin=.venv/bin
$bin/coverage erase
$bin/coverage run -m pytest "$@"
$bin/coverage combine --quiet
failed=0 # both reports are shown
$bin/coverage report || failed=1
$bin/coverage report --fail-under=100 --include "$($bin/python deploy/pure_rooms.py)" || failed=1
exit $failed
