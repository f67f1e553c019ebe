#!/usr/bin/env bash
# Unpacks the Debian package into a folder and uses the launcher from there, without torch.
# usage: deb.sh PACKAGES-FOLDER
set -euo pipefail
packages="$1"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT
cd "$temporary"
unset VIRTUAL_ENV LOCKSTEP_TORCH

deb="$(echo "$packages"/lockstep_*_amd64.deb)"
dpkg-deb -x "$deb" unpacked
test "$(dpkg-deb -f "$deb" Package Architecture | tr '\n' ' ')" == "Package: lockstep Architecture: amd64 "
# Owned by root, whoever packed it.
dpkg-deb -c "$deb" | awk '$2 != "root/root" { print; bad = 1 } END { exit bad }'
test ! -e unpacked/usr/bin/lockstep-worker
test ! -e unpacked/usr/lib/lockstep/torch.json
test -f unpacked/usr/share/doc/lockstep/copyright
# The libraries of the launcher are those of the packages it depends on.
readelf -d unpacked/usr/bin/lockstep | grep NEEDED | grep -v -E 'lib(stdc\+\+|m|gcc_s|c)\.so\.[0-9]+\]' && exit 1

export PATH="$temporary/unpacked/usr/bin:/usr/bin:/bin"
lockstep --version | tee output
grep -q "^lockstep $(dpkg-deb -f "$deb" Version) (" output
# shellcheck disable=SC2016  # the ranks' shell expands it
lockstep run --nproc-per-node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"' | sort > output
printf 'rank 0 of 2\nrank 1 of 2\n' | diff - output
code=0
lockstep train tiny 2> output || code=$?
test "$code" == 127
grep -q "install Lockstep's wheel" output
