#!/usr/bin/env bash
# other_torch.sh CMAKE SOURCE TORCH COMPILER: configures against stand-ins for the
# CUDA 12.8 and the CPU build of torch; the CUDA parts are left out, with the reason.
set -euo pipefail

cmake="$1" source="$2" torch="$3" compiler="$4"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# stand_in NAME: the headers and libraries of $torch, without its CUDA library.
stand_in() {
  local folder="$work/$1/torch" library
  mkdir -p "$folder/lib"
  ln -s "$torch/include" "$folder/include"
  for library in "$torch"/lib/*.so*; do
    [[ "$library" == *libtorch_cuda.so ]] || ln -s "$library" "$folder/lib/"
  done
}

# expect NAME TEXT [FLAG...]
expect() {
  local name="$1" text="$2" output="$work/$1/output"
  shift 2
  "$cmake" -S "$source" -B "$work/$name/build" -G Ninja "-DCMAKE_CXX_COMPILER=$compiler" -DCMAKE_BUILD_TYPE=Release \
    "-DLOCKSTEP_TORCH=$work/$name/torch" -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_EXAMPLES=OFF "$@" \
    > "$output" 2>&1 || true
  if ! tr -s ' \n' ' ' < "$output" | grep -qF "$text"; then
    echo "no '$text' in:"
    cat "$output"
    exit 1
  fi
}

stand_in cu128
touch "$work/cu128/torch/lib/libtorch_cuda.so"
echo "cuda: Optional[str] = '12.8'" > "$work/cu128/torch/version.py"
why="this torch is built for CUDA 12.8, the CUDA parts need 13.x: install the cu130 build of torch"
expect cu128 "CUDA parts: no ($why)"
expect cu128 "cannot be built: $why" -DLOCKSTEP_CUDA=ON

stand_in libtorch
touch "$work/libtorch/torch/lib/libtorch_cuda.so"
echo "2.11.0+cu126" > "$work/libtorch/torch/build-version"
expect libtorch "CUDA parts: no (this torch is built for CUDA 12.6,"

stand_in cpu
expect cpu "CUDA parts: no (this libtorch is CPU-only"
