# libtorch and a CUDA compiler. Sourced by lockstep.sh.
#
# Both come from PyPI into one virtual environment that all clones share. Files
# named .lockstep-* in it are written last, and say what is complete.
# shellcheck shell=bash disable=SC2034  # TORCH and NVCC are read by lockstep.sh

TORCH_VERSION=2.11.0
TORCH_REQUIREMENTS=("torch==$TORCH_VERSION" numpy pillow safetensors
  wandb==0.31.0 tensorboard scipy pytorch-fid==0.3.0 torch-fidelity==0.4.0
  tokenizers==0.23.3 transformers==5.22.2 opencv-python-headless==4.13.0.92 h5py==3.16.0 # those behind torch for tests,
  pyarrow==26.0.1) # this one also for lockstep-prepare
# LeRobot, whose own requirements exclude this torch: it and what its data sets import, into a separate folder.
LEROBOT_REQUIREMENTS=(lerobot==0.4.4 accelerate==1.15.0 av==15.1.0 datasets==4.8.5 dill==0.4.1 multiprocess==0.70.19
  pandas==3.1.1 psutil==7.2.2 python-dateutil==4.0.0 torchcodec==0.11.1)
# Schemas of Kubernetes and of PyTorchJob, which check the manifests; the latter only to read, without what it imports.
KUBERNETES_REQUIREMENTS=(kubernetes-validate==1.37.0)
KUBEFLOW_REQUIREMENTS=(kubeflow-training==1.9.4)
NVCC_REQUIREMENTS=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88
  nvidia-cuda-crt==13.0.88 'nvidia-cuda-cccl==13.0.*')
CACHE="${LOCKSTEP_CACHE:-$HOME/.cache/lockstep}"
VENV="$CACHE/torch-$TORCH_VERSION"

# The file names what was installed, so that a new requirement is noticed.
torch_is_complete() {
  [[ "$(cat "$VENV/.lockstep-torch" 2> /dev/null)" == "${TORCH_REQUIREMENTS[*]}"* ]]
}

lerobot_is_complete() {
  [[ "$(cat "$VENV/.lockstep-torch" 2> /dev/null)" == "${TORCH_REQUIREMENTS[*]} ${LEROBOT_REQUIREMENTS[*]}" ]]
}

# The folder "torch" in $1: a wheel's, a virtual environment's or libtorch.
# The same places as in cmake/FindLibtorch.cmake.
torch_folder() {
  local folder
  for folder in "$1" "$1/torch" "$1"/lib/python3*/{site,dist}-packages/torch; do
    if [[ -e "$folder/include/torch/headeronly/version.h" ]]; then
      printf '%s' "$folder"
      return 0
    fi
  done
  return 1
}

torch_version() {
  awk '/#define TORCH_VERSION_(MAJOR|MINOR|PATCH) / { v = v dot $3; dot = "." }
    END { print v }' "$1/include/torch/headeronly/version.h"
}

# The torch 2.11 of an active virtual environment, which is used before another one is downloaded.
active_torch() {
  local folder
  [[ -n "${VIRTUAL_ENV:-}" ]] && folder=$(torch_folder "$VIRTUAL_ENV") &&
    [[ "$(torch_version "$folder")" == 2.11.* ]] && printf '%s' "$folder"
}

# Whether nothing has to be downloaded.
has_torch() {
  [[ -n "${LOCKSTEP_TORCH:-}" ]] || torch_is_complete || active_torch > /dev/null
}

# Sets TORCH (the folder), and NVCC (empty: the build goes on without CUDA).
ensure_torch() {
  if [[ -n "${LOCKSTEP_TORCH:-}" ]]; then
    use_named_torch
  elif ! torch_is_complete && TORCH=$(active_torch); then
    note "torch $(torch_version "$TORCH") of the active virtual environment $VIRTUAL_ENV"
  else
    torch_is_complete || install_torch
    TORCH=$(torch_folder "$VENV") || fail "$VENV holds no torch; remove the folder and start again"
  fi
  ensure_nvcc
}

use_named_torch() {
  local version
  TORCH=$(torch_folder "$LOCKSTEP_TORCH") || fail \
    "LOCKSTEP_TORCH=$LOCKSTEP_TORCH holds no libtorch" \
    "It must name a folder 'torch' of a wheel, a virtual environment, or an unpacked libtorch."
  version=$(torch_version "$TORCH")
  [[ "$version" == 2.11.* ]] || fail \
    "LOCKSTEP_TORCH=$LOCKSTEP_TORCH is torch $version; Lockstep needs 2.11.x" \
    "Unset LOCKSTEP_TORCH to have $TORCH_VERSION installed."
}

install_torch() {
  lock "$CACHE/.lock" "$VENV"
  if ! torch_is_complete; then
    if ! torch_imports; then
      step "torch $TORCH_VERSION (a download of about 2 GB) and what the tests compare with from PyPI into $VENV"
      install_into_venv torch "${TORCH_REQUIREMENTS[@]}"
    fi
    torch_imports || fail "torch in $VENV does not import; remove the folder and start again"
    printf '%s\n' "${TORCH_REQUIREMENTS[*]}" > "$VENV/.lockstep-torch"
  fi
  unlock
}

# For the interop tests alone, and only beside the torch of this script: nobody waits for it before the demo.
ensure_lerobot() {
  if [[ "$TORCH" != "$VENV"/* ]] || lerobot_is_complete; then return 0; fi
  lock "$CACHE/.lock" "$VENV"
  step "LeRobot from PyPI into $VENV, for the tests that compare with it"
  if ! lerobot_imports; then
    rm -rf "$VENV/lerobot"
    install_into_venv lerobot --no-deps --target "$VENV/lerobot" "${LEROBOT_REQUIREMENTS[@]}"
  fi
  if ! lerobot_imports; then
    show_log import-lerobot 8
    fail "lerobot in $VENV/lerobot does not import (torchcodec needs FFmpeg's libraries and libpython3-dev)"
  fi
  printf '%s\n' "${TORCH_REQUIREMENTS[*]} ${LEROBOT_REQUIREMENTS[*]}" > "$VENV/.lockstep-torch"
  unlock
}

# The python3 that imports the torch of the user's: the order is that of cmake/FindLibtorch.cmake.
python_of_torch() {
  local python
  for python in "${LOCKSTEP_PYTHON:-}" "$TORCH/../../../../bin/python3"; do
    if [[ -x "$python" ]]; then
      printf '%s' "$python"
      return 0
    fi
  done
  command -v python3
}

# For one test alone. Beside a torch of the user's, whose environment is left alone, they lie in the cache.
ensure_kubernetes_schemas() {
  local folder="$VENV/kubernetes" python wanted="${KUBERNETES_REQUIREMENTS[*]} ${KUBEFLOW_REQUIREMENTS[*]}"
  if [[ "$TORCH" != "$VENV"/* ]]; then
    folder="$CACHE/kubernetes"
    python=$(python_of_torch)
    wanted+=" $("$python" --version)"
  fi
  if [[ "$(cat "$folder/.lockstep" 2> /dev/null)" == "$wanted" ]]; then return 0; fi
  mkdir -p "$CACHE"
  lock "$CACHE/.lock" "$folder"
  step "Schemas of Kubernetes from PyPI into $folder, for the test of the manifests"
  rm -rf "$folder"
  mkdir -p "$folder"
  if [[ "$TORCH" == "$VENV"/* ]]; then
    install_into_venv kubernetes --target "$folder" "${KUBERNETES_REQUIREMENTS[@]}"
    install_into_venv kubeflow --no-deps --target "$folder" "${KUBEFLOW_REQUIREMENTS[@]}"
  else
    install_beside_torch "$python" --target "$folder" "${KUBERNETES_REQUIREMENTS[@]}"
    install_beside_torch "$python" --no-deps --target "$folder" "${KUBEFLOW_REQUIREMENTS[@]}"
  fi
  printf '%s\n' "$wanted" > "$folder/.lockstep"
  unlock
}

# install_beside_torch PYTHON ARGUMENT...: into a folder of our own.
install_beside_torch() {
  local python="$1"
  shift
  with_pip_settings quietly pip-beside "$python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
    "$@" && return 0
  show_log pip-beside 8
  fail "could not install $* with $python from ${LOCKSTEP_WHEELS:-PyPI}"
}

torch_imports() {
  [[ ! -e "$VENV/.lockstep-started-torch" ]] && "$VENV/bin/python3" -c \
    "import PIL, cv2, h5py, numpy, pyarrow, pytorch_fid, safetensors, scipy, tensorboard, tokenizers, torch, torch_fidelity, transformers, wandb; assert torch.__version__.split('+')[0] == '$TORCH_VERSION'" 2> /dev/null
}

lerobot_imports() {
  [[ ! -e "$VENV/.lockstep-started-lerobot" ]] && PYTHONPATH="$VENV/lerobot" quietly import-lerobot \
    "$VENV/bin/python3" -c "import lerobot.datasets.lerobot_dataset, torchcodec.decoders"
}

# with_pip_settings COMMAND...: pip's own settings (mirrors, proxies) stay; LOCKSTEP_WHEELS takes the place of every
# index. pip splits its variable at blanks, hence the URL.
with_pip_settings() {
  local wheels
  if [[ -z "${LOCKSTEP_WHEELS:-}" ]]; then
    "$@"
  else
    compgen -G "$LOCKSTEP_WHEELS/*.whl" > /dev/null || fail \
      "LOCKSTEP_WHEELS=$LOCKSTEP_WHEELS is not a folder with wheels (*.whl)" \
      "docs/how-to/installing.md says how to fill one."
    wheels=$(python3 -c 'import pathlib, sys; print(pathlib.Path(sys.argv[1]).resolve().as_uri())' "$LOCKSTEP_WHEELS")
    PIP_NO_INDEX=1 PIP_FIND_LINKS="$wheels" "$@"
  fi
}

# install_into_venv NAME REQUIREMENT...: an install that was killed half-way (its
# .lockstep-started file is still there) is written over whole.
install_into_venv() {
  local name="$1" started="$VENV/.lockstep-started-$1" again=()
  shift
  [[ ! -e "$started" ]] || again=(--ignore-installed)
  torch_is_complete || make_venv # which empties a broken one
  touch "$started"
  if ! with_pip_settings quietly "pip-$name" "$VENV/bin/python3" -m pip install --disable-pip-version-check \
    --no-input --progress-bar off "${again[@]}" "$@"; then
    rm -f "$started" # pip itself undid what it had begun
    if [[ "$name" == nvcc ]]; then return 1; fi
    show_log "pip-$name" 8
    fail "could not install $* from ${LOCKSTEP_WHEELS:-PyPI}" \
      "It needs the network (or a package index that pip is set up for, or a folder of wheels" \
      "in LOCKSTEP_WHEELS). By hand:" \
      "  python3 -m venv '$VENV' && '$VENV/bin/python3' -m pip install $*" \
      "Or name a torch 2.11 that is already here: LOCKSTEP_TORCH=/path/to/torch ./lockstep.sh ..."
  fi
  rm -f "$started"
}

# download_wheels FOLDER: all that set-up takes from PyPI, for LOCKSTEP_WHEELS on a machine without a network. Run it with
# the Python version of that machine.
download_wheels() {
  local folder="${1:-}" pip=(python3 -m pip download --disable-pip-version-check --only-binary ":all:")
  [[ -n "$folder" ]] || fail "name the folder: ./lockstep.sh wheels FOLDER"
  mkdir -p "$folder"
  step "Wheels (about 3 GB) into $folder"
  if ! { quietly wheels "${pip[@]}" --dest "$folder" "${TORCH_REQUIREMENTS[@]}" "${NVCC_REQUIREMENTS[@]}" "$AUDITWHEEL" \
    "${KUBERNETES_REQUIREMENTS[@]}" &&
    quietly wheels "${pip[@]}" --dest "$folder" --no-deps "${LEROBOT_REQUIREMENTS[@]}" "${KUBEFLOW_REQUIREMENTS[@]}"; }; then
    show_log wheels 8
    fail "the download failed"
  fi
  note "on the other machine: LOCKSTEP_WHEELS=FOLDER ./lockstep.sh build"
}

make_venv() {
  if [[ -e "$VENV/pyvenv.cfg" ]] && "$VENV/bin/python3" -m pip --version > /dev/null 2>&1; then return 0; fi
  mkdir -p "$CACHE"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || fail \
    "$(command -v python3) is $(python3 --version); torch $TORCH_VERSION needs Python 3.10 or later"
  if ! quietly venv python3 -m venv --clear "$VENV"; then
    show_log venv 8
    fail "cannot make a Python environment in $VENV" \
      "As root, type: apt-get install -y python3-venv"
  fi
}

# The first nvcc of CUDA 13, looked for where cmake/LockstepCuda.cmake looks.
find_nvcc() {
  local nvcc wheel
  wheel="$(dirname "$TORCH")/nvidia/cu13/bin/nvcc"
  [[ ! -e "$VENV/.lockstep-started-nvcc" ]] || wheel=""
  for nvcc in "${LOCKSTEP_NVCC:-}" "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" \
    "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc "$wheel"; do
    if [[ -x "$nvcc" ]] && "$nvcc" --version 2> /dev/null | grep -q 'release 13\.'; then
      printf '%s' "$nvcc"
      return 0
    fi
  done
  return 1
}

# Sets NVCC. The download is tried once per build folder.
ensure_nvcc() {
  local tried="$ROOT/build/.nvcc-tried"
  NVCC=""
  [[ -e "$TORCH/lib/libtorch_cuda.so" ]] || return 0
  if NVCC=$(find_nvcc) || [[ -e "$tried" ]]; then return 0; fi
  if [[ -z "${LOCKSTEP_TORCH:-}" && "$TORCH" == "$VENV"/* ]]; then
    lock "$CACHE/.lock" "$VENV"
    step "CUDA compiler 13.0 from PyPI into $VENV"
    install_into_venv nvcc "${NVCC_REQUIREMENTS[@]}" || true
    unlock
  fi
  if ! NVCC=$(find_nvcc); then
    note "No CUDA 13 compiler (nvcc): the CUDA parts are left out. To have them, install CUDA 13, or:"
    note "  pip install ${NVCC_REQUIREMENTS[*]}   (into the environment of torch)"
    mkdir -p "$ROOT/build"
    touch "$tried"
  fi
}
