#!/usr/bin/env bash
# Packs a build twice, an hour apart for the files' own times, and compares the bytes. The first set stays in OUTPUT
# for the tests that install it.
# usage: pack_twice.sh TOOLS-FOLDER BUILD-FOLDER OUTPUT-FOLDER
set -euo pipefail
tools="$1" build="$2" output="$3"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT

export SOURCE_DATE_EPOCH=1700000000
rm -rf "$output"
python3 -B "$tools/package/pack.py" --draft "$build" "$output"
(umask 027 && TZ=Asia/Shanghai LC_ALL=C python3 -B "$tools/package/pack.py" --draft "$build" "$temporary/again")
test "$(find "$output" -type f | wc -l)" == 3
diff -r "$output" "$temporary/again"
