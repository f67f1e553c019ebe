# MkDocs and Doxygen, which make the site. Sourced by lockstep.sh after the other parts of the set-up.
#
# MkDocs comes from PyPI into a virtual environment of its own, beside that of torch; its file
# .lockstep-site is written last.
# shellcheck shell=bash

SITE_REQUIREMENTS="$ROOT/tools/site/requirements.txt"
# One per list of requirements, since clones share the cache.
SITE_VENV="$CACHE/site-$(sha256sum < "$SITE_REQUIREMENTS" | cut -c 1-12)"

site_is_complete() { [[ -e "$SITE_VENV/.lockstep-site" ]]; }

ensure_site_tools() {
  local missing kinds=(docs)
  site_is_complete || kinds+=(torch) # python3-venv
  missing=$(missing_packages "${kinds[@]}")
  if [[ -n "$missing" ]]; then
    step "Debian packages: $missing"
    # shellcheck disable=SC2086  # a list of names
    install_packages $missing || true
    missing=$(missing_packages "${kinds[@]}")
    [[ -z "$missing" ]] || fail "these packages are missing and could not be installed: $missing" \
      "As root, with the network up, type:" \
      "  apt-get update && apt-get install -y --no-install-recommends $missing"
  fi
  site_is_complete || install_site_tools
}

install_site_tools() {
  lock "$CACHE/.lock" "$SITE_VENV"
  if ! site_is_complete; then
    step "MkDocs from PyPI into $SITE_VENV"
    if ! quietly venv-site python3 -m venv --clear "$SITE_VENV" ||
      ! quietly pip-site "$SITE_VENV/bin/python3" -m pip install --disable-pip-version-check --no-input \
        --progress-bar off -r "$SITE_REQUIREMENTS"; then
      show_log "$([[ -e "$LOGS/pip-site.log" ]] && echo pip-site || echo venv-site)" 8
      fail "could not install MkDocs into $SITE_VENV" \
        "It needs the network (or a package index that pip is set up for). By hand:" \
        "  python3 -m venv '$SITE_VENV' && '$SITE_VENV/bin/python3' -m pip install -r '$SITE_REQUIREMENTS'" \
        "  touch '$SITE_VENV/.lockstep-site'"
    fi
    touch "$SITE_VENV/.lockstep-site"
  fi
  unlock
}
