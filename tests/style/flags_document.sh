#!/usr/bin/env bash
# Fails when the document is not what the worker writes.
# usage: flags_document.sh LOCKSTEP-WORKER DOCUMENT
set -euo pipefail

worker="$1" document="$2"
if ! difference="$(diff "$document" <("$worker" flags))"; then
  head -n 20 <<< "$difference"
  echo "$document is stale; make it again: $worker flags > $document"
  exit 1
fi
