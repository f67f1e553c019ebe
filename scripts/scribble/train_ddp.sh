#!/usr/bin/env bash
# As train_torchrun.sh, under the name of the guide's second way and with a folder of its own.
set -euo pipefail
LOGDIR=${LOGDIR:-./log/train_ddp_r50_deeplabv2}
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
exec "$LOCKSTEP" train scribble --nproc "$NUM_GPUS" "${settings[@]}" "$@"
