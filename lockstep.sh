#!/usr/bin/env bash
# The newcomer's script: sets a machine up, builds, and runs what was built.
# Every command may be interrupted and started again.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
LOGS="$ROOT/build/logs"
# shellcheck source=tools/setup/steps.sh
source "$ROOT/tools/setup/steps.sh"
# shellcheck source=tools/setup/packages.sh
source "$ROOT/tools/setup/packages.sh"
# shellcheck source=tools/setup/torch.sh
source "$ROOT/tools/setup/torch.sh"
# shellcheck source=tools/setup/docs.sh
source "$ROOT/tools/setup/docs.sh"
# shellcheck source=tools/setup/package.sh
source "$ROOT/tools/setup/package.sh"

trap 'echo "lockstep.sh: interrupted; what is downloaded and built is kept: start it again" >&2; exit 130' INT
trap 'exit 143' TERM

PASSED=0
FAILED=0
SKIPPED=0
FAILED_REPORTS=()

help() {
  cat << 'TEXT'
usage: ./lockstep.sh COMMAND

  demo                   build what is needed, train a small model on two ranks and draw with it
  test [--fast | --all] [ARGS]
                         build and run all tests; ARGS go to ctest, for example -R Sampler
                         --fast leaves out slow tests, GPU tests, GCC, sanitizers and fuzzing
                         --all adds the whole tree and all but the slow tests under GCC, ASan/UBSan
                         and TSan (hours)
  fuzz [SECONDS] [NAME]  feed damaged files and settings to the readers, 300 s each, or to
                         one of them; what is learned stays in build/fuzz-corpus
  build [PRESET] [-D..]  build a preset of CMakePresets.json (release when none is named)
  install [PREFIX] [-D..] install programs, library, headers and CMake package (~/.local)
  docs                   make the searchable site of the documents, in both languages, in build/site
  package [-D..]         make an archive, a Debian package and a Python wheel in build/packages
  wheels FOLDER          download what set-up takes from PyPI, for LOCKSTEP_WHEELS elsewhere
  bench [NAME]           run the benchmarks, or one of them
  clean                  remove build/
  help                   this text

demo, test, fuzz, build, install, package and bench first install what is missing: Debian
packages (as root or by sudo), torch 2.11.0 and, where there is no CUDA 13, its compiler. docs, and
test unless --fast, install Doxygen, and MkDocs from PyPI. apt's and pip's own settings (mirrors,
proxies) apply. Where the Debian packages are there, nothing needs root; a torch 2.11 in an active
virtual environment is used.

Environment:
  LOCKSTEP_CACHE    where torch and MkDocs go, shared by all clones (~/.cache/lockstep)
  LOCKSTEP_TORCH    an existing torch 2.11 to use instead: a folder 'torch' of a wheel,
                    a virtual environment, or an unpacked libtorch
  LOCKSTEP_WHEELS   a folder of wheels: Python packages come from there, not from the network
  LOCKSTEP_PYTHON   a python3 that imports that torch and Pillow, for the interop tests
  LOCKSTEP_NVCC     the CUDA 13 compiler to use
  LOCKSTEP_JOBS     compile jobs (default: by cores and memory)
  LOCKSTEP_TEST_JOBS  tests at a time (2)
  CXX               the C++ compiler (clang++-19 where there is one, else g++)
TEXT
}

# --- set-up and build ---------------------------------------------------------

set_up() {
  ensure_packages
  ensure_torch
  if [[ -z "${CXX:-}" ]]; then
    CXX=g++
    if command -v clang++-19 > /dev/null; then CXX=clang++-19; fi
  fi
  export CXX
}

# A job that includes torch headers takes up to 1.5 GB.
compile_jobs() {
  local by_memory cores
  by_memory=$(awk '/MemTotal/ { print int($2 / 1500000) }' /proc/meminfo)
  cores=$(nproc)
  if ((by_memory < cores)); then cores=$by_memory; fi
  printf '%d' "${LOCKSTEP_JOBS:-$((cores > 0 ? cores : 1))}"
}

# What a configured build folder depends on; another value configures it anew. CMake's files name the tree's folder.
settings() {
  printf '%s\n' "tree=$ROOT" "CXX=$CXX" "torch=$TORCH" "nvcc=$NVCC" "python=${LOCKSTEP_PYTHON:-}" "$@"
}

# configure PRESET [-D...]. The file .lockstep-configured is written last.
configure() {
  local preset="$1" folder="$ROOT/build/$1" fresh=() named=()
  local stamp="$folder/.lockstep-configured"
  shift
  if [[ -e "$stamp" && -e "$folder/build.ninja" ]]; then
    if [[ $# == 0 && "$(head -n 5 "$stamp")" == "$(settings)" ]]; then return 0; fi
    if [[ "$(cat "$stamp")" == "$(settings "$@")" ]]; then return 0; fi
    fresh=(--fresh)
  fi
  step "Configuring $preset ($CXX)"
  rm -f "$stamp"
  [[ -z "$NVCC" ]] || named+=("-DLOCKSTEP_NVCC=$NVCC")
  [[ -z "${LOCKSTEP_PYTHON:-}" ]] || named+=("-DLOCKSTEP_PYTHON=$LOCKSTEP_PYTHON")
  if ! (cd "$ROOT" && quietly "configure-$preset" cmake --preset "$preset" "${fresh[@]}" \
    "-DLOCKSTEP_TORCH=$TORCH" "${named[@]}" "$@"); then
    show_errors "configure-$preset"
    fail "configuring $preset failed"
  fi
  # What this build lacks, in CMake's words.
  sed -n -E 's/^-- ((CUDA parts: no|Python with torch: none).*)/       \1/p' "$LOGS/configure-$preset.log"
  settings "$@" > "$stamp"
}

# compile PRESET [TARGET...]: ninja decides what is old.
compile() {
  local preset="$1"
  shift
  step "Building $preset${1:+: $*}"
  if ! quietly "build-$preset" ninja -C "$ROOT/build/$preset" -j "$(compile_jobs)" "$@"; then
    show_errors "build-$preset"
    return 1
  fi
}

has_target() { grep -q "^build $2: phony" "$ROOT/build/$1/build.ninja"; }

has_gpu() { nvidia-smi -L > /dev/null 2>&1; }

# --- commands -----------------------------------------------------------------

build() {
  local preset=release
  if [[ $# -gt 0 && "$1" != -* ]]; then
    preset="$1"
    shift
  fi
  set_up
  lock "$ROOT/build/.lock" "build/"
  configure "$preset" "$@"
  compile "$preset" || fail "the build failed"
  unlock
  step "Built. Programs are in $ROOT/build/$preset/bin"
}

demo() {
  local targets=(lockstep lockstep-worker)
  [[ $# == 0 ]] || fail "demo takes no arguments, got '$1'; lockstep train dit --help shows what can be set"
  set_up
  lock "$ROOT/build/.lock" "build/"
  configure release
  if has_gpu && has_target release lockstep_cuda; then targets+=(lockstep_cuda); fi
  compile release "${targets[@]}" || fail "the build failed"
  unlock
  (cd "$ROOT" && tools/demo build/release/bin runs/demo)
}

# run_tests PRESET NAME CTEST-ARGUMENTS...: adds to PASSED, FAILED and SKIPPED.
run_tests() {
  local preset="$1" report="$LOGS/ctest-$2.xml" total failures skipped
  local title="$2" status=0
  shift 2
  step "Testing $title"
  rm -f "$report"
  ctest --test-dir "$ROOT/build/$preset" --output-on-failure --timeout 600 \
    --output-junit "$report" "$@" || status=$?
  if [[ ! -e "$report" ]]; then
    FAILED=$((FAILED + 1))
    note "ctest itself failed"
    return 0
  fi
  total=$(report_count "$report" tests)
  failures=$(report_count "$report" failures)
  skipped=$(($(report_count "$report" skipped) + $(report_count "$report" disabled)))
  if ((status != 0 && failures == 0)); then failures=1 skipped=$((skipped - 1)); fi # not run
  ((failures == 0)) || FAILED_REPORTS+=("$report")
  PASSED=$((PASSED + total - failures - skipped))
  FAILED=$((FAILED + failures))
  SKIPPED=$((SKIPPED + skipped))
}

# Once more at the end, where it is seen: what the failed tests of a report said.
show_failed() {
  awk '/<testcase / { name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name); failed = 0 }
    /<failure/ { failed = 1; print "--- failed: " name }
    /<\/testcase>/ { failed = 0 }
    failed' "$1" | tail -n 150
}

report_count() { grep -o -m 1 "\b$2=\"[0-9]*\"" "$1" | head -n 1 | tr -cd '0-9'; }

# A build that fails counts as one failed test.
build_and_test() {
  local preset="$1"
  lock "$ROOT/build/.lock" "build/"
  configure "$preset"
  if compile "$preset"; then
    unlock
    run_tests "$@"
  else
    unlock
    FAILED=$((FAILED + 1))
  fi
}

# A build without tests: what counts is that it compiles.
build_as_test() {
  lock "$ROOT/build/.lock" "build/"
  configure "$1"
  if compile "$1"; then PASSED=$((PASSED + 1)); else FAILED=$((FAILED + 1)); fi
  unlock
}

test_all() {
  local extent=usual jobs="${LOCKSTEP_TEST_JOBS:-2}" without='^gpu$'
  case "${1:-}" in
    --fast)
      extent=fast
      without='^(gpu|slow)$'
      shift
      ;;
    --all)
      extent=all
      shift
      ;;
  esac
  set_up
  ensure_lerobot
  ensure_kubernetes_schemas
  # Where it cannot be installed, the test of the site says so.
  [[ $extent == fast ]] || (ensure_site_tools) || note "going on without MkDocs and Doxygen"
  build_and_test release release -j "$jobs" -LE "$without" "$@"
  if [[ $extent != fast ]]; then
    if has_gpu; then
      run_tests release gpu -j 1 -L '^gpu$' "$@"
    else
      note "no GPU here (nvidia-smi -L fails): the tests labelled gpu are left out"
    fi
    build_and_test asan-base asan-base -j "$jobs" -LE "$without" "$@"
    if has_fuzzer; then
      CXX=clang++-19 build_and_test fuzz fuzz -j "$jobs" "$@"
    else
      note "no clang++-19 with libFuzzer here: the fuzz targets are left out"
    fi
    CXX=g++ build_as_test gcc-base
  fi
  if [[ $extent == all ]]; then
    # Slow tests are whole trainings, which take ten times as long here.
    without='^(gpu|slow)$'
    CXX=g++ build_and_test gcc gcc -j "$jobs" -LE "$without" "$@"
    # Failed allocations are ours to report.
    ASAN_OPTIONS=allocator_may_return_null=1 build_and_test asan asan -j "$jobs" -LE "$without" "$@"
    TSAN_OPTIONS="$(tsan_options)" build_and_test tsan tsan -j "$jobs" -LE "$without" "$@"
  fi
  local report
  for report in "${FAILED_REPORTS[@]}"; do show_failed "$report"; done
  ((SKIPPED == 0)) || echo "$SKIPPED skipped"
  if ((PASSED + FAILED == 0)); then echo "no test matched: $*"; fi
  echo "$PASSED passed, $FAILED failed"
  ((FAILED == 0 && PASSED > 0))
}

# Suppressions name functions, which needs a symbolizer.
tsan_options() {
  local symbolizer
  symbolizer="$(command -v llvm-symbolizer-19 || command -v llvm-symbolizer || true)"
  echo "ignore_noninstrumented_modules=1:allocator_may_return_null=1:die_after_fork=0:suppressions=$ROOT/tests/thread_sanitizer.supp${symbolizer:+:external_symbolizer_path=$symbolizer}"
}

# libFuzzer comes with clang; gcc has none.
has_fuzzer() {
  command -v clang++-19 > /dev/null &&
    compgen -G "$(clang++-19 -print-resource-dir)/lib/linux/libclang_rt.fuzzer-*.a" > /dev/null
}

# fuzz [SECONDS] [TARGET]
fuzz() {
  local seconds=300 target failed=0 targets=()
  for target in "$ROOT"/tests/fuzz/fuzz_*.cpp; do
    target="${target##*/fuzz_}"
    targets+=("${target%.cpp}")
  done
  if [[ "${1:-}" =~ ^[0-9]+$ ]]; then
    seconds="$1"
    shift
  fi
  if [[ $# -gt 0 ]]; then
    [[ " ${targets[*]} " == *" ${1#fuzz_} "* ]] || fail "no fuzz target '$1'; there are: ${targets[*]}"
    targets=("${1#fuzz_}")
  fi
  set_up
  has_fuzzer || fail "fuzzing needs clang++-19 and its libFuzzer: apt-get install -y clang-19 libclang-rt-19-dev"
  export CXX=clang++-19
  lock "$ROOT/build/.lock" "build/"
  configure fuzz
  compile fuzz || fail "the build failed"
  unlock
  for target in "${targets[@]}"; do
    step "Fuzzing $target for $seconds s"
    "$ROOT/tests/fuzz/run" "$ROOT/build/fuzz/bin" "fuzz_$target" "$seconds" || failed=1
  done
  return $failed
}

install_to() {
  local prefix="${1:-$HOME/.local}"
  build release "${@:2}"
  if ! quietly install cmake --install "$ROOT/build/release" --prefix "$prefix"; then
    show_log install
    fail "installing to $prefix failed"
  fi
  step "Installed to $prefix"
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) note "add $prefix/bin to PATH to type lockstep alone" ;;
  esac
  note "programs: $prefix/bin   CMake: find_package(Lockstep) with -DCMAKE_PREFIX_PATH=$prefix"
}

docs() {
  ensure_site_tools
  step "Building the site"
  if ! quietly site "$SITE_VENV/bin/python3" "$ROOT/tools/site/build.py" "$ROOT" "$ROOT/build/site"; then
    show_log site
    fail "the site could not be built"
  fi
  step "Built: $ROOT/build/site"
  note "python3 -m http.server --bind 127.0.0.1 -d '$ROOT/build/site' shows it at http://127.0.0.1:8000"
}

bench() {
  [[ -x "$ROOT/bench/run" ]] || fail "there are no benchmarks in this tree (bench/run is missing)"
  build
  "$ROOT/bench/run" "$@"
}

main() {
  local command="${1:-help}"
  shift || true
  case "$command" in
    demo) demo "$@" ;;
    test) test_all "$@" ;;
    fuzz) fuzz "$@" ;;
    build) build "$@" ;;
    install) install_to "$@" ;;
    docs) docs "$@" ;;
    package) package "$@" ;;
    wheels) download_wheels "$@" ;;
    bench) bench "$@" ;;
    clean) rm -rf "$ROOT/build" ;;
    help | -h | --help) help ;;
    *) fail "unknown command '$command'; ./lockstep.sh help lists them" ;;
  esac
}

main "$@"
