#!/usr/bin/env bash
# Unpacks the archive somewhere and trains with a torch that is found in each of the three ways; other builds of
# torch are refused before they are loaded.
# usage: archive.sh PACKAGES-FOLDER TOOLS-FOLDER PYTHON (one that imports torch)
set -euo pipefail
packages="$1" tools="$2" python="$3"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT
cd "$temporary"
export CUDA_VISIBLE_DEVICES=""
unset VIRTUAL_ENV LOCKSTEP_TORCH LD_LIBRARY_PATH

tar --zstd -xf "$packages"/lockstep-*-linux-x86_64-*.tar.zst
mv lockstep-* "a folder"
python3 -B "$tools/check_binaries.py" "$temporary/a folder"
lockstep="$temporary/a folder/bin/lockstep"
torch="$("$python" -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("torch").origin))')"

# No folder of the machine that built it.
for file in "a folder"/bin/* "a folder"/lib/*.so*; do
  # shellcheck disable=SC2016  # $ORIGIN is a word of the loader
  if readelf -d "$file" | grep RUNPATH | grep -v '\[$ORIGIN/../lib:$ORIGIN/../lib/lockstep\]'; then exit 1; fi
done
if grep -rIl "$torch" "a folder"; then exit 1; fi

# train WAY VARIABLE...: two ranks, one epoch.
train() {
  local way="$1"
  shift
  env "$@" "$lockstep" train tiny --nproc 2 --epochs 1 --save_dir "by-$way"
  test -f "by-$way/best_model.pt"
}
train variable "LOCKSTEP_TORCH=$torch" PATH=/usr/bin:/bin
train environment "VIRTUAL_ENV=$(dirname "$(dirname "$python")")" PATH=/usr/bin:/bin
train path "PATH=$(dirname "$python"):/usr/bin:/bin"

# A torch of another kind: one sentence, exit code 2, and nothing of it is loaded (its library is an empty file).
mkdir -p other/torch/lib
touch other/torch/lib/libtorch_cpu.so
refuse() {
  printf "__version__ = '%s'\ncuda: Optional[str] = %s\n" "$1" "$2" > other/torch/version.py
  code=0
  LOCKSTEP_TORCH=other "$lockstep" train tiny > output 2>&1 || code=$?
  cat output
  test "$code" == 2
  test "$(wc -l < output)" == 1
  grep -q "torch in $temporary/other/torch.*$1.*install that one: pip install --force-reinstall torch==2.11" output
}
refuse 2.11.0+cpu None
refuse 2.11.0+cu126 "'12.6'"
refuse 2.11.0+cu128 "'12.8'"
refuse 2.10.0+cu130 "'13.0'"

# What is installed beside the programs.
for file in share/doc/lockstep/README.md share/doc/lockstep/licenses/libpng-dev.txt share/doc/lockstep/docs/README.md \
  share/lockstep/atlas/configs/train_config.yaml share/lockstep/scripts/dit/run_ddp.sh include/lockstep/lockstep.h \
  lib/cmake/Lockstep/LockstepConfig.cmake; do
  test -f "a folder/$file"
done
LOCKSTEP_TORCH="$torch" NPROC=1 bash "a folder/share/lockstep/scripts/dit/run_ddp.sh" --help > output
grep -q -- --num_register_tokens output
