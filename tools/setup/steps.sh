# Step lines with elapsed time, logs for noisy commands, locks and messages.
# Sourced by lockstep.sh; expects ROOT and LOGS.
# shellcheck shell=bash

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

step() { printf '[%s] %s\n' "$(elapsed)" "$*"; }

note() { printf '       %s\n' "$*"; }

fail() {
  printf 'lockstep.sh: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# quietly NAME COMMAND...: output goes to build/logs/NAME.log. Every few seconds
# its last line is shown, so that a long build or download is seen to move.
quietly() {
  local log="$LOGS/$1.log" status=0 watcher
  shift
  mkdir -p "$LOGS"
  : > "$log"
  watch_log "$log" 9>&- &
  watcher=$!
  "$@" >> "$log" 2>&1 || status=$?
  kill "$watcher" 2> /dev/null || true
  wait "$watcher" 2> /dev/null || true
  [[ -t 1 ]] && printf '\r\033[K'
  return "$status"
}

watch_log() {
  local pause=2 last
  [[ -t 1 ]] || pause=30
  while sleep "$pause" > /dev/null 2>&1 && kill -0 "$$" 2> /dev/null; do
    last=$(tail -n 1 "$1" | tr -cd '[:print:]' | cut -c 1-70)
    if [[ -t 1 ]]; then
      printf '\r\033[K[%s]   %s' "$(elapsed)" "$last"
    else
      printf '[%s]   %s\n' "$(elapsed)" "$last"
    fi
  done
}

# The last lines of a failed step, and where the rest is.
show_log() {
  local log="$LOGS/$1.log"
  tail -n "${2:-25}" "$log" >&2
  printf 'lockstep.sh: the whole log is %s\n' "$log" >&2
}

# CMake's, the compiler's or the linker's own words in a failed build.
show_errors() {
  local log="$LOGS/$1.log"
  { grep -m 1 -A 7 'CMake Error' "$log" ||
    grep -E -m 12 '(error:|FAILED:|undefined (reference|symbol))' "$log" ||
    tail -n 12 "$log"; } | cut -c 1-200 >&2
  printf 'lockstep.sh: the whole log is %s\n' "$log" >&2
}

# lock FILE WHAT: held until unlock, or until the last child that inherited it
# ends. So a build that outlives a killed script still keeps others out.
lock() {
  mkdir -p "$(dirname "$1")"
  exec 9> "$1"
  if ! flock -n 9; then
    step "Waiting: another lockstep.sh is busy with $2"
    flock 9
  fi
}

unlock() { exec 9>&-; }
