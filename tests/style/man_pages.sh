#!/usr/bin/env bash
# Fails when groff warns about a man page, or a command has none.
# usage: man_pages.sh FOLDER
set -euo pipefail

for name in lockstep lockstep-{train,eval,sample,prepare,run}; do
  page="$1/$name.1"
  warnings="$(groff -ww -man -Tutf8 -z "$page" 2>&1)"
  if [[ -n $warnings ]]; then
    echo "$warnings"
    exit 1
  fi
  # As the reader sees it.
  text="$(GROFF_NO_SGR=1 groff -man -Tascii "$page" | sed 's/.\x08//g')"
  grep -q "^NAME" <<< "$text"
  if [[ $name != lockstep ]]; then grep -q -- "--nproc" <<< "$text"; fi
done

# Flags of preparations: scribble, protein and the settings of atlas.
for flag in distancemap_s pdb_dir cache_dir; do
  grep -q -- "--$flag" <<< "$(GROFF_NO_SGR=1 groff -man -Tascii "$1/lockstep-prepare.1" | sed 's/.\x08//g')"
done
