#!/usr/bin/env bash
# The recipe jit on N GPUs (2), with the guide's defaults. Otherwise as train.sh.
#   bash scripts/jit/train_multi_gpu.sh 4 --seed 1
set -euo pipefail
NUM_GPUS=${NUM_GPUS:-2}
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then
  NUM_GPUS="$1"
  shift
fi
# The guide's rate for two GPUs; it grows by hand: LR=2e-4 for four.
LR=${LR:-1e-4}
WANDB_NAME=${WANDB_NAME:-jit-v1-${NUM_GPUS}gpu}
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
echo "effective batch: $BATCH_SIZE x $NUM_GPUS x $GRADIENT_ACCUMULATION_STEPS =" \
  "$((BATCH_SIZE * NUM_GPUS * GRADIENT_ACCUMULATION_STEPS))"
exec "$LOCKSTEP" train jit --nproc "$NUM_GPUS" "${settings[@]}" "$@"
