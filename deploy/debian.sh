#!/bin/sh
# Install the Debian packages of one level, or say which are missing.
#
#   deploy/debian.sh run    bubblewrap, the sandbox of the shell tool, and the
#                           library that the local model is linked against
#   deploy/debian.sh dev    also Debian's own Python, on which the fast tests run
#                           too, the browser of the page tests and its fonts, the
#                           library with the numbers of system calls, the mail
#                           servers of the e-mail tests, and as root debootstrap,
#                           which makes the empty machine of the README's test
#
# Installs if it runs as root and apt-get is there. Otherwise it prints one line and
# succeeds: the daemon then refuses the shell tool, or the local model, and tests
# that need a missing package are skipped (in CI they fail).
set -eu

missing=
need() { [ "$2" = present ] || missing="$missing $1"; }
program() { command -v "$1" >/dev/null && echo present || echo absent; }
file() { # any of the paths
    for path in "$@"; do
        if [ -e "$path" ]; then echo present; return; fi
    done
    echo absent
}

need bubblewrap "$(program bwrap)"
need libgomp1 "$(file /usr/lib/*/libgomp.so.1 /usr/lib*/libgomp.so.1)"
if [ "${1:-}" = dev ]; then
    need python3-venv "$(file /usr/lib/python3*/ensurepip)"
    need libseccomp2 "$(file /usr/lib/*/libseccomp.so.2 /usr/lib*/libseccomp.so.2)"
    need chromium-headless-shell "$(program chromium-headless-shell)"
    need fonts-dejavu-core "$(file /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf)"
    need fonts-noto-color-emoji "$(file /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf)"
    need dovecot-imapd "$(file /usr/lib/dovecot/imap)"
    need dovecot-lmtpd "$(file /usr/lib/dovecot/lmtp)"
    need postfix "$(file /usr/sbin/postfix)"
    [ "$(id -u)" != 0 ] || need debootstrap "$(program debootstrap)"
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
