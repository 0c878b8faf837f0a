#!/bin/sh
# Write the two lock files from pyproject.toml, with hashes and without an index address.
#
# requirements.lock is what `make run` installs; requirements-dev.lock contains it.
# It keeps locked versions that still fit; `deploy/lock.sh --upgrade` takes the newest ones.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! command -v uv >/dev/null; then
    "${PYTHON:-python3}" -m venv "$scratch/uv"
    "$scratch/uv/bin/python" -m pip install --quiet --disable-pip-version-check uv
    PATH="$scratch/uv/bin:$PATH"
fi

compile() { # the file, then more options of `uv pip compile`
    file=$1
    shift
    uv pip compile --quiet pyproject.toml --extra local --extra attachments --group build "$@" \
        --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --output-file "$file" >/dev/null
}

compile deploy/requirements.lock "$@"
compile deploy/requirements-dev.lock --group dev --extra telegram --extra discord --extra slack \
    --extra email --extra tokenizer --constraints deploy/requirements.lock "$@"
