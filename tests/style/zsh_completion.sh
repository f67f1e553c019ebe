#!/usr/bin/env bash
# Completes words as zsh does when the user presses Tab.
# usage: zsh_completion.sh COMPLETIONS
set -euo pipefail

# A zsh in a pseudo-terminal types the line and Tab; the line that comes back is printed.
complete_line() {
  zsh -f -c '
    zmodload zsh/zpty
    zpty shell "PS1= TERM=dumb zsh -f -i"
    zpty -w shell "fpath=(${1:h} \$fpath); autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste beep; print -r -- rea\"\"dy"
    zpty -r -m shell line "*ready*" || exit 1
    zpty -w -n shell "${2}"$'"'"'\t'"'"'
    zpty -w -n shell $'"'"'\C-a: \C-e\n'"'"'
    zpty -w shell "print -r -- do\"\"ne"
    zpty -r -m shell line "*done*"
    print -r -- "$line"
  ' zsh "$1" "$2"
}

for pair in 'lockstep com=completion' 'lockstep train ti=tiny' 'lockstep train tiny --wid=--width' \
  'lockstep train tiny --optimizer s=sgd'; do
  shown="$(complete_line "$1" "${pair%%=*}")"
  grep -qF -- "${pair#*=}" <<< "$shown" || { echo "'${pair%%=*}' becomes '$shown'"; exit 1; }
done
