#!/usr/bin/env bash
# site.sh SOURCE: builds the site of the documents strictly and checks it (tools/site/check_site.py). What it needs
# is installed by ./lockstep.sh docs.
set -euo pipefail

ROOT="$1"
for part in steps packages torch docs; do
  # shellcheck disable=SC1090  # parts of this repository
  source "$ROOT/tools/setup/$part.sh"
done
if ! site_is_complete || ! command -v doxygen > /dev/null; then
  echo "MkDocs or Doxygen is missing: ./lockstep.sh docs installs both"
  exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"$SITE_VENV/bin/python3" -B "$ROOT/tools/site/build.py" "$ROOT" "$work/site"
python3 -B "$ROOT/tools/site/check_site.py" "$work/site"
