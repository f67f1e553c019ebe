#!/usr/bin/env bash
# Completes words as fish does when the user presses Tab.
# usage: fish_completion.sh COMPLETIONS
set -euo pipefail

# expect LINE WORD...: all words are offered for the line.
expect() {
  local line="$1" offered word
  shift
  offered="$(fish --no-config -c "source $completions; complete -C '$line'" | cut -f1)"
  for word; do
    grep -qxF -- "$word" <<< "$offered" || { echo "'$line' does not offer '$word': $offered"; exit 1; }
  done
}

completions="$1"
expect 'lockstep tr' train
expect 'lockstep train t' tiny
expect 'lockstep train tiny --wid' --width
expect 'lockstep train tiny --optimizer s' sgd
expect 'lockstep completion f' fish
