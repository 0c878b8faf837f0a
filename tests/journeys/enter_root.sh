#!/bin/sh
# Become the first process of a machine whose root is a directory of this one.
#
#   unshare --mount --pid --fork --kill-child sh enter_root.sh ROOT PATH...
#
# Each PATH of this machine appears there, read-only. The root is entered by pivot_root, because the
# kernel refuses user namespaces, and with them the sandbox, to whoever lives in a chroot. Prints its
# process id, as this machine counts, when everything stands. It ends with its standard input, and
# whatever runs in there ends with it; the mounts are nobody else's and go as well.
set -eu

root=$1
shift

read -r pid _ </proc/self/stat # while /proc is still this machine's

mount --bind "$root" "$root" # pivot_root wants a mount
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
for descriptor in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
    ln -s "/proc/self/${descriptor#*:}" "$root/dev/${descriptor%%:*}"
done

for path in "$@"; do
    at=$root$path
    [ ! -L "$at" ] || rm "$at" # it would lead to a place of this machine
    mkdir -p "${at%/*}"
    if [ -d "$path" ]; then mkdir -p "$at"; else : >>"$at"; fi
    mount --bind "$path" "$at"
    mount -o remount,bind,ro "$at"
done

cd "$root"
mkdir -p .before
pivot_root . .before
cd /
umount -l /.before
rmdir /.before
# shellcheck disable=SC2016 # for the shell of that root
exec /bin/sh -c 'echo "$0"; read -r _ || :' "$pid"
