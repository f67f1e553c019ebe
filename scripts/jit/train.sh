#!/usr/bin/env bash
# The recipe jit on one GPU, with the guide's defaults. Every variable of settings.sh can be set from
# outside, and all flags of the recipe can follow:
#   BATCH_SIZE=128 bash scripts/jit/train.sh --seed 1
set -euo pipefail
LR=${LR:-5e-5}
WANDB_NAME=${WANDB_NAME:-jit-v1}
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
exec "$LOCKSTEP" train jit --nproc 1 "${settings[@]}" "$@"
