#!/bin/sh
# Install the Debian packages of one level, or say which are missing.
#
#   deploy/debian.sh run    bubblewrap, the sandbox of the shell tool
#   deploy/debian.sh dev    that, and the browser that the page tests drive
#
# Installs when it is root and apt-get is there. Otherwise it prints one line and
# goes on: the daemon refuses the shell tool then, and tests that need what is
# missing are skipped (in CI they fail).
set -eu

missing=
need() { [ "$2" = present ] || missing="$missing $1"; }
program() { command -v "$1" >/dev/null && echo present || echo absent; }
file() { [ -e "$1" ] && echo present || echo absent; }

need bubblewrap "$(program bwrap)"
if [ "${1:-}" = dev ]; then
    need chromium "$(program chromium)"
    need fonts-dejavu-core "$(file /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf)"
fi

[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    printf 'setup: installing%s\n' "$missing"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list of names
    if apt-get update -qq >"$log" 2>&1 &&
        apt-get install -y -qq --no-install-recommends $missing >>"$log" 2>&1; then
        rm -f "$log"
        exit 0
    fi
    tail -n 3 "$log" >&2
    rm -f "$log"
fi
printf 'setup: missing%s, install with: apt-get install --no-install-recommends%s\n' "$missing" "$missing" >&2
