#!/usr/bin/env bash
# The recipe scribble on two GPUs, with the guide's defaults. Every variable can be set from outside,
# and all flags of the recipe can follow:
#   NUM_GPUS=4 BATCHSIZE=4 bash scripts/scribble/train_torchrun.sh --epochs 10
set -euo pipefail
LOGDIR=${LOGDIR:-./log/train_torchrun_r50_deeplabv2}
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
exec "$LOCKSTEP" train scribble --nproc "$NUM_GPUS" "${settings[@]}" "$@"
