#!/usr/bin/env bash
# Fails when help texts or completions are not those in this folder.
# usage: check.sh LOCKSTEP-WORKER [--update]
#   --update writes the files anew; look at the difference before it is committed.
set -euo pipefail

worker="$1" mode="${2:-}"
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
made="$(mktemp -d)"
trap 'rm -rf "$made"' EXIT

"$worker" recipes > "$made/recipes.txt"
while read -r recipe _; do
  for command in train eval prepare; do
    "$worker" "$command" "$recipe" --help > "$made/$command-$recipe.txt"
  done
done < <(tail -n +2 "$made/recipes.txt")
"$worker" manual "$made/share"
cp "$made/share/bash-completion/completions/lockstep" "$made/lockstep.bash"
rm -r "$made/share"

if [[ $mode == --update ]]; then
  rm -f "$folder"/*.txt "$folder"/*.bash
  cp "$made"/* "$folder"
  exit
fi
if ! difference="$(diff -r -x check.sh -x CMakeLists.txt "$folder" "$made")"; then
  head -n 40 <<< "$difference"
  echo "$folder is stale; if this is meant: $folder/check.sh $worker --update"
  exit 1
fi
