# The variables of both scripts, and the flags made of them. Sourced.
# shellcheck shell=bash
# Paths are those of the folder that a script is called from.
DATA_PATH=${DATA_PATH:-data}
SAVE_DIR=${SAVE_DIR:-runs/dit}
NUM_REGISTER_TOKENS=${NUM_REGISTER_TOKENS:-0}
BATCH_SIZE=${BATCH_SIZE:-128} # per process
N_STEPS=${N_STEPS:-200000}
LR=${LR:-1e-4}

# The build of this source tree, else the programs installed with this script, else those on PATH.
if [[ -z "${LOCKSTEP:-}" ]]; then
  here="$(dirname "${BASH_SOURCE[0]}")"
  for LOCKSTEP in "$here/../../build/release/bin/lockstep" "$here/../../../../bin/lockstep" lockstep; do
    if [[ -x "$LOCKSTEP" ]]; then break; fi
  done
fi

# shellcheck disable=SC2034  # used by the scripts
settings=(
  --data_path "$DATA_PATH"
  --save_dir "$SAVE_DIR"
  --num_register_tokens "$NUM_REGISTER_TOKENS"
  --batch_size "$BATCH_SIZE"
  --n_steps "$N_STEPS"
  --lr "$LR"
)
