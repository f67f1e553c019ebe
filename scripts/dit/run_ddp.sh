#!/usr/bin/env bash
# The recipe dit on all visible GPUs (without any: one process), with the guide's defaults.
# Every variable can be set from outside, and all flags of the recipe can follow:
#   BATCH_SIZE=64 bash scripts/dit/run_ddp.sh --num_register_tokens 4
set -euo pipefail
NPROC=${NPROC:-auto}
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
exec "$LOCKSTEP" train dit --nproc "$NPROC" "${settings[@]}" "$@"
