# `./lockstep.sh package`. Sourced by lockstep.sh.
# shellcheck shell=bash

AUDITWHEEL=auditwheel==6.8.2

# The time of the last commit, so that a commit gives equal packages on every day.
source_date() {
  if [[ -n "${SOURCE_DATE_EPOCH:-}" ]]; then
    printf '%s' "$SOURCE_DATE_EPOCH"
  else
    git -C "$ROOT" log -1 --format=%ct 2> /dev/null || fail \
      "this tree is not a git clone: set SOURCE_DATE_EPOCH to the time of its release, in seconds"
  fi
}

# package [-D...]: build/packages. Without CUDA parts: -DLOCKSTEP_CUDA=OFF.
package() {
  local output="$ROOT/build/packages" epoch
  epoch=$(source_date)
  set_up
  lock "$ROOT/build/.lock" "build/"
  configure package "$@"
  compile package || fail "the build failed"
  unlock
  step "Packing"
  rm -rf "$output"
  if ! SOURCE_DATE_EPOCH="$epoch" quietly pack python3 -B "$ROOT/tools/package/pack.py" "$ROOT/build/package" "$output"; then
    show_log pack
    fail "packing failed"
  fi
  check_wheel_tag "$output"/*.whl
  step "Packages are in $output"
  (cd "$output" && sha256sum -- *)
}

# auditwheel says which systems the wheel runs on.
check_wheel_tag() {
  local venv="$ROOT/build/auditwheel"
  if ! { quietly venv-auditwheel python3 -m venv "$venv" && with_pip_settings quietly pip-auditwheel \
    "$venv/bin/python3" -m pip install --disable-pip-version-check --no-input "$AUDITWHEEL"; }; then
    note "$AUDITWHEEL could not be installed: the tag of the wheel is not checked"
    return 0
  fi
  if ! quietly auditwheel "$venv/bin/python3" -B "$ROOT/tools/package/check_wheel.py" "$1"; then
    show_log auditwheel
    fail "the wheel does not fit its tag"
  fi
}
