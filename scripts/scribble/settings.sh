# The variables of both scripts, and the flags made of them. Sourced.
# shellcheck shell=bash
# Paths are those of the folder that a script is called from.
NUM_GPUS=${NUM_GPUS:-2}
DATASET_PATH=${DATASET_PATH:-dataset/ScribbleSup}
DATASET=${DATASET:-ScribblePseudoDsDc}
TRAIN_PATH=${TRAIN_PATH:-pascal_2012_scribble}
PESUDO_PATH=${PESUDO_PATH:-bmp_pseudolabel}
DISTANCEMAP_S=${DISTANCEMAP_S:-distance_map}
DISTANCEMAP_C=${DISTANCEMAP_C:-distance_pseudo}
MODEL_TYPE=${MODEL_TYPE:-res50_ASPP_lorm}
LAYERS=${LAYERS:-50}
MODEL_PATH=${MODEL_PATH:-None} # torchvision's ImageNet weights
BATCHSIZE=${BATCHSIZE:-8}      # per process
WORKERS=${WORKERS:-4}
EPOCHS=${EPOCHS:-50}
LR=${LR:-1e-3} # times the number of processes
L_SEGS=${L_SEGS:-1}
L_PESUDO=${L_PESUDO:-1}
L_LORM=${L_LORM:-1}
L_DS=${L_DS:-1}
L_DC=${L_DC:-1}
LABEL_SMOOTH=${LABEL_SMOOTH:-0}

# The build of this source tree, else the programs installed with this script, else those on PATH.
if [[ -z "${LOCKSTEP:-}" ]]; then
  here="$(dirname "${BASH_SOURCE[0]}")"
  for LOCKSTEP in "$here/../../build/release/bin/lockstep" "$here/../../../../bin/lockstep" lockstep; do
    if [[ -x "$LOCKSTEP" ]]; then break; fi
  done
fi

# shellcheck disable=SC2034  # used by the scripts
settings=(
  --distributed
  --dataset_path "$DATASET_PATH"
  --dataset "$DATASET"
  --train_path "$TRAIN_PATH"
  --pesudo_path "$PESUDO_PATH"
  --distancemap_s "$DISTANCEMAP_S"
  --distancemap_c "$DISTANCEMAP_C"
  --model_type "$MODEL_TYPE"
  --layers "$LAYERS"
  --model_path "$MODEL_PATH"
  --batchsize "$BATCHSIZE"
  --workers "$WORKERS"
  --epochs "$EPOCHS"
  --lr "$LR"
  --l_segs "$L_SEGS"
  --l_pesudo "$L_PESUDO"
  --l_lorm "$L_LORM"
  --l_ds "$L_DS"
  --l_dc "$L_DC"
  --label_smooth "$LABEL_SMOOTH"
  --logdir "$LOGDIR"
)
