# The variables of both scripts, and the flags made of them. Sourced.
# shellcheck shell=bash
# Paths are those of the folder that a script is called from.
DATA_PATH=${DATA_PATH:-./data/train}
OUTPUT_DIR=${OUTPUT_DIR:-./run/jit_v1}
MODEL=${MODEL:-JiT-B/4}
IMG_SIZE=${IMG_SIZE:-64}
BATCH_SIZE=${BATCH_SIZE:-64} # per process
EPOCHS=${EPOCHS:-100}
WEIGHT_DECAY=${WEIGHT_DECAY:-0.01}
WARMUP_EPOCHS=${WARMUP_EPOCHS:-5}
MAX_GRAD_NORM=${MAX_GRAD_NORM:-1.0}
GRADIENT_ACCUMULATION_STEPS=${GRADIENT_ACCUMULATION_STEPS:-1}
USE_AMP=${USE_AMP:-true}
USE_WANDB=${USE_WANDB:-true}
WANDB_PROJECT=${WANDB_PROJECT:-jit-diffusion}

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
  --output_dir "$OUTPUT_DIR"
  --model "$MODEL"
  --img_size "$IMG_SIZE"
  --batch_size "$BATCH_SIZE"
  --epochs "$EPOCHS"
  --lr "$LR"
  --weight_decay "$WEIGHT_DECAY"
  --warmup_epochs "$WARMUP_EPOCHS"
  --max_grad_norm "$MAX_GRAD_NORM"
  --gradient_accumulation_steps "$GRADIENT_ACCUMULATION_STEPS"
  --wandb_project "$WANDB_PROJECT"
  --wandb_name "$WANDB_NAME"
)
[[ "$USE_AMP" != true ]] || settings+=(--use_amp)
[[ "$USE_WANDB" != true ]] || settings+=(--use_wandb)
