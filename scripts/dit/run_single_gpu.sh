#!/usr/bin/env bash
# The recipe dit on one GPU: the first that is visible. Otherwise as run_ddp.sh.
set -euo pipefail
# shellcheck source=SCRIPTDIR/settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
exec "$LOCKSTEP" train dit --nproc 1 "${settings[@]}" "$@"
