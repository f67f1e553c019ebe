#!/usr/bin/env bash
# The set-up of lockstep.sh with stand-ins for apt-get, sudo and pip, and once with the real pip and a folder of wheels.
# usage: setup_test.sh SOURCE-FOLDER CASE
set -euo pipefail
source_folder="$1" case="$2"
temporary="$(mktemp -d)"
# A subshell that is killed right after its fork still has this trap.
trap '[[ $BASHPID != "$$" ]] || rm -rf "$temporary"' EXIT
cd "$temporary"
export LOCKSTEP_CACHE="$temporary/cache" HOME="$temporary"
unset VIRTUAL_ENV LOCKSTEP_TORCH LOCKSTEP_WHEELS

# shellcheck disable=SC2034  # read by the files below
ROOT="$temporary/tree" LOGS="$temporary/logs"
for part in steps packages torch package; do
  # shellcheck source=/dev/null
  source "$source_folder/tools/setup/$part.sh"
done

# stand_in NAME TEXT: a program in front of PATH that writes its name and arguments to the file "called".
stand_in() {
  mkdir -p bin
  printf '#!/bin/sh\necho "%s $*" >> "%s/called"\n%s\n' "$1" "$temporary" "$2" > "bin/$1"
  chmod +x "bin/$1"
}
PATH="$temporary/bin:$PATH"

expect() { grep -q -F -e "$2" "$1" || { echo "not in $1: $2" && cat "$1" && exit 1; }; }

# Two packages are there, two are not, one of them only optional.
packages() {
  printf '%s\n' 'present required command sh' 'other required file /' 'no-such-dev required command no-such-program' \
    'no-such-tool optional command no-such-tool'
}

# A folder that looks like torch of a version, in a virtual environment.
fake_torch() {
  local header="$1/lib/python3.11/site-packages/torch/include/torch/headeronly/version.h"
  mkdir -p "$(dirname "$header")"
  printf '#define TORCH_VERSION_%s\n' 'MAJOR 2' "MINOR $2" 'PATCH 0' > "$header"
}

# A virtual environment whose Python is a stand-in that shows pip's settings.
fake_venv() {
  mkdir -p "$VENV/bin"
  touch "$VENV/pyvenv.cfg"
  # shellcheck disable=SC2016  # expanded by the stand-in
  stand_in python3-of-venv 'echo "index=$PIP_INDEX_URL no_index=$PIP_NO_INDEX links=$PIP_FIND_LINKS" >> "$0.settings"'
  mv bin/python3-of-venv "$VENV/bin/python3"
}

case "$case" in
  without_root_the_missing_packages_are_listed)
    stand_in id 'echo 1000'
    stand_in sudo 'exit 1'
    stand_in apt-get 'exit 1'
    (ensure_packages) > output 2>&1 && exit 1
    expect output "these packages are missing and could not be installed: no-such-dev"
    expect output "apt-get install -y --no-install-recommends no-such-dev no-such-tool"
    if grep apt-get called; then exit 1; fi
    ;;
  without_root_nothing_is_asked_when_all_is_there)
    packages() { printf '%s\n' 'present required command sh'; }
    stand_in sudo 'exit 1'
    ensure_packages
    test ! -e called
    ;;
  apt_keeps_its_own_settings)
    stand_in id 'echo 0'
    stand_in apt-cache 'echo known'
    stand_in apt-get ''
    (ensure_packages) > output 2>&1 && exit 1
    expect called "apt-get -o DPkg::Lock::Timeout=120 update"
    expect called "install -y --no-install-recommends no-such-dev no-such-tool"
    if grep -E 'sources|Acquire|Dir::' called; then exit 1; fi
    ;;
  pip_keeps_its_own_settings)
    fake_venv
    PIP_INDEX_URL=mirror install_into_venv torch something
    expect "$VENV/bin/python3.settings" "index=mirror no_index= links="
    expect called "-m pip install --disable-pip-version-check --no-input --progress-bar off something"
    ;;
  a_folder_without_wheels_is_refused)
    fake_venv
    mkdir wheels
    (LOCKSTEP_WHEELS=wheels install_into_venv torch something) > output 2>&1 && exit 1
    expect output "LOCKSTEP_WHEELS=wheels is not a folder with wheels"
    ;;
  an_active_environment_with_torch_is_used)
    fake_torch "$temporary/active" 11
    export VIRTUAL_ENV="$temporary/active"
    ensure_torch > output
    test "$TORCH" == "$temporary/active/lib/python3.11/site-packages/torch"
    expect output "torch 2.11.0 of the active virtual environment $temporary/active"
    test ! -e "$LOCKSTEP_CACHE"
    ;;
  a_torch_of_the_users_is_left_alone)
    fake_torch "$temporary/active" 11
    mkdir "$temporary/active/lib/python3.11/site-packages/torch/lib"
    touch "$temporary/active/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"
    find_nvcc() { return 1; }
    for variable in VIRTUAL_ENV LOCKSTEP_TORCH; do
      rm -rf tree # where the attempt is remembered
      (export "$variable=$temporary/active" && ensure_torch) > output
      expect output "No CUDA 13 compiler (nvcc): the CUDA parts are left out"
    done
    test ! -e "$LOCKSTEP_CACHE"
    ;;
  an_active_environment_with_another_torch_is_not)
    fake_torch "$temporary/active" 10
    export VIRTUAL_ENV="$temporary/active"
    if has_torch; then exit 1; fi
    ;;
  a_folder_of_wheels_replaces_the_network)
    mkdir "folder of wheels"
    python3 - << 'SCRIPT'
import zipfile
with zipfile.ZipFile("folder of wheels/lockstep_probe-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("lockstep_probe.py", "")
    info = "lockstep_probe-1.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: lockstep-probe\nVersion: 1\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
SCRIPT
    LOCKSTEP_WHEELS="folder of wheels" install_into_venv torch lockstep-probe==1
    "$VENV/bin/python3" -c "import lockstep_probe"
    (LOCKSTEP_WHEELS="folder of wheels" install_into_venv torch not-in-the-folder) > output 2>&1 && exit 1
    expect output "could not install not-in-the-folder from folder of wheels"
    ;;
  a_moved_tree_is_configured_anew)
    fake_torch "$temporary/active" 11
    mkdir -p tree
    cp -r "$source_folder"/{lockstep.sh,tools} tree
    printf 'packages() { :; }\nensure_nvcc() { NVCC=; }\n' >> tree/tools/setup/package.sh # the last one that is read
    stand_in cmake 'mkdir -p build/release && touch build/release/build.ninja'
    stand_in ninja ''
    export LOCKSTEP_TORCH="$temporary/active" CXX=g++
    tree/lockstep.sh build
    tree/lockstep.sh build
    test "$(grep -c "^cmake" called)" == 1
    mv tree moved
    moved/lockstep.sh build
    expect called "cmake --preset release --fresh"
    expect called "ninja -C $temporary/moved/build/release"
    ;;
  lerobot_is_for_the_tests_alone)
    fake_venv
    fake_torch "$VENV" 11
    ensure_nvcc() { :; }
    ensure_torch
    torch_is_complete
    if lerobot_is_complete || grep lerobot called; then exit 1; fi
    ensure_lerobot
    expect called "import lerobot"
    lerobot_is_complete
    # One that does not import ends with the reason.
    rm "$VENV/.lockstep-torch"
    printf '#!/bin/sh\ncase "$*" in *"import lerobot"*) echo "no libpython" >&2; exit 1 ;; esac\n' > "$VENV/bin/python3"
    ensure_torch
    (ensure_lerobot) > output 2>&1 && exit 1
    expect output "no libpython"
    expect output "does not import"
    ;;
  kubernetes_schemas_are_installed_once)
    fake_venv
    fake_torch "$VENV" 11
    ensure_nvcc() { :; }
    ensure_torch
    if grep kubernetes called; then exit 1; fi
    ensure_kubernetes_schemas
    expect called "kubernetes-validate=="
    expect called "kubeflow-training=="
    rm called
    ensure_kubernetes_schemas
    if [[ -e called ]]; then exit 1; fi
    ;;
  kubernetes_schemas_lie_beside_a_torch_of_the_users)
    fake_torch "$temporary/theirs" 11
    ensure_nvcc() { :; }
    mkdir -p theirs/bin
    # shellcheck disable=SC2016  # expanded by the stand-in
    stand_in python3-of-theirs 'case "$1" in --version) echo "Python 3.11.2" ;; esac'
    mv bin/python3-of-theirs theirs/bin/python3
    export LOCKSTEP_TORCH="$temporary/theirs"
    ensure_torch
    ensure_kubernetes_schemas
    expect called "--target $LOCKSTEP_CACHE/kubernetes kubernetes-validate=="
    expect called "--target $LOCKSTEP_CACHE/kubernetes kubeflow-training=="
    rm called
    ensure_kubernetes_schemas
    if grep -e "pip install" called; then exit 1; fi
    ;;
  *)
    echo "unknown case $case" >&2
    exit 2
    ;;
esac
