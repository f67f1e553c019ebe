#!/usr/bin/env bash
# Installs the wheel into a new virtual environment beside a torch that is already on this machine, trains, runs a
# Python script, builds a C++ program with it, and removes it without a trace.
# usage: wheel.sh PACKAGES-FOLDER EXAMPLES-FOLDER PYTHON COMPILER (PYTHON imports torch)
set -euo pipefail
packages="$1" examples="$2" python="$3" compiler="$4"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT
cd "$temporary"
export CUDA_VISIBLE_DEVICES=""
unset VIRTUAL_ENV LOCKSTEP_TORCH LD_LIBRARY_PATH

"$python" -m venv --without-pip venv
site="$(echo venv/lib/python3*/site-packages)"
# Makes the packages of the Python that has torch importable, without 3 GB of copies.
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/torch.pth"
pip() { "$python" -m pip --disable-pip-version-check --python "$temporary/venv/bin/python3" "$@"; }
find venv -type f -not -path '*/__pycache__*' | sort > before
PIP_NO_INDEX=1 pip install --quiet --no-deps "$packages"/lockstep_ddp-*.whl
pip show lockstep-ddp > output
grep '^Requires: torch$' output

# By its path, without activation: the environment is the program's own.
venv/bin/lockstep --version | tee output
grep -q "^torch 2.11" output
venv/bin/lockstep train tiny --nproc 2 --epochs 1
test -f runs/tiny/best_model.pt

cat > train.py << 'SCRIPT'
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"{int(total)} ranks")
dist.destroy_process_group()
SCRIPT
PATH="$temporary/venv/bin:$PATH" lockstep run --nproc-per-node 2 train.py > output
grep "^2 ranks$" output

cp -r "$examples/04_cmake_consumer" consumer
cmake -S consumer -B consumer/build -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
  "-DLockstep_DIR=$(venv/bin/lockstep --cmake-dir)"
cmake --build consumer/build
venv/bin/lockstep run --nproc-per-node 2 consumer/build/consumer | tee output
grep -q "2 ranks: parameters are equal on all of them" output

pip uninstall --quiet --yes lockstep-ddp
find venv -type f -not -path '*/__pycache__*' | sort > after
diff before after
