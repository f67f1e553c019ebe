#!/usr/bin/env bash
# Installs a build to a temporary prefix, copies the example away from this tree,
# builds it against the installed package, and runs it with the installed launcher.
# usage: cmake_consumer.sh CMAKE BUILD-FOLDER EXAMPLE-FOLDER COMPILER
set -euo pipefail

cmake="$1" build="$2" example="$3" compiler="$4"
temporary="$(mktemp -d)"
trap 'rm -rf "$temporary"' EXIT

"$cmake" --install "$build" --prefix "$temporary/prefix" > /dev/null
cp -r "$example" "$temporary/consumer"
cd "$temporary/consumer"
"$cmake" -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$compiler" \
  "-DCMAKE_PREFIX_PATH=$temporary/prefix"
"$cmake" --build build

"$temporary/prefix/bin/lockstep" version
"$temporary/prefix/bin/lockstep" run --nproc-per-node 2 build/consumer | tee output
grep -q "2 ranks: parameters are equal on all of them" output
