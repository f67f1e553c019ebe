#!/usr/bin/env bash
# Completes words as bash does when the user presses Tab.
# usage: bash_completion.sh COMPLETIONS
set -euo pipefail

source "$1"
failed=0

# expect WORDS... : EXPECTED...: the last of WORDS is being typed.
expect() {
  local words=() wanted
  while [[ $1 != ':' ]]; do
    words+=("$1")
    shift
  done
  shift
  wanted="$*"
  COMP_WORDS=("${words[@]}")
  COMP_CWORD=$((${#words[@]} - 1))
  COMPREPLY=()
  _lockstep || true  # No match.
  if [[ "${COMPREPLY[*]}" != "$wanted" ]]; then
    echo "'${words[*]}' gives '${COMPREPLY[*]}', not '$wanted'"
    failed=1
  fi
}

expect lockstep tr : train
expect lockstep comp : completion
expect lockstep completion z : zsh
expect lockstep train t : tiny
expect lockstep train --nproc 2 sc : scribble
expect lockstep train --npr : --nproc-per-node --nproc
expect lockstep train tiny --nproc 2 --wid : --width
expect lockstep train --save_dir x tiny --no_aug : --no_augment
expect lockstep train tiny --optimizer s : sgd
expect lockstep train tiny --optimizer = ad : adamw adam
expect lockstep train tiny --lr-schedule c : constant cosine
expect lockstep train dit --wid :
expect lockstep eval tiny --checkp : --checkpoint
expect lockstep run --max-r : --max-restarts
expect lockstep run ./pro :
complete -p lockstep | grep -q -- '-o default' || failed=1  # Files where nothing else fits.
exit "$failed"
