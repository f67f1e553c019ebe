#!/usr/bin/env bash
# Installs a build to a temporary prefix and moves it, copies three examples away from this
# tree, builds them against the installed package, and runs them with the installed launcher.
# usage: cmake_consumer.sh CMAKE BUILD-FOLDER EXAMPLES-FOLDER COMPILER
set -euo pipefail

cmake="$1" build="$2" examples="$3" compiler="$4"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT

"$cmake" --install "$build" --prefix "$temporary/installed" > /dev/null
mv "$temporary/installed" "$temporary/prefix"
python3 -B "$examples/../tools/check_binaries.py" "$temporary/prefix"
# The public headers and nothing else; no path or warning flag of this build in the package.
diff -r "$examples/../include" "$temporary/prefix/include"
if grep -rnE -e "$build|$(realpath "$examples/..")|$temporary|-W(all|error|extra)" "$temporary/prefix"/lib*/cmake; then
  exit 1
fi
cp -r "$examples/04_cmake_consumer" "$temporary/consumer"
cd "$temporary/consumer"
"$cmake" -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
  "-DCMAKE_PREFIX_PATH=$temporary/prefix"
"$cmake" --build build

"$temporary/prefix/bin/lockstep" version
"$temporary/prefix/bin/lockstep" run --nproc-per-node 2 build/consumer | tee output
grep -q "2 ranks: parameters are equal on all of them" output

# The same project with a recipe as its program.
cp "$examples/06_own_recipe/own_recipe.cpp" main.cpp
"$cmake" --build build
"$temporary/prefix/bin/lockstep" run --nproc-per-node 2 build/consumer --epochs 1 | tee output
grep -q "done; everything is in runs/ring" output
test -f runs/ring/best_model.pt

# A checkpoint of the installed program, and samples of it from a program of one's own.
"$temporary/prefix/bin/lockstep" train dit --data_path builtin:shapes --img_size 16 --patch 8 --dim 16 --depth 1 \
  --heads 2 --batch_size 4 --n_steps 1 --limit_val_batches 1 --sample_every none --no_use_wandb
cp "$examples/05_sample_from_cpp/main.cpp" main.cpp
"$cmake" --build build
build/consumer dit runs/dit/model.pth stars --ema 0 --classes 7 --cfg_scales 2 --sample_steps 2 | tee output
test -s stars/images/step1_cfg2.0_ema.png
