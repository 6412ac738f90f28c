#!/usr/bin/env bash
# Finds Chromium, in which the tests look at the pages of `tablefeed report`, and prints its path.
#
# Where none is found and apt may install (root, or sudo that asks for no password), the distribution's is installed;
# else this says what to install and exits with 1.
set -euo pipefail

find_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
}

# As root, or by a sudo that asks for no password. False where neither is to be had.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    command -v sudo >/dev/null && sudo -n "$@"
  fi
}

if ! find_chromium; then
  log=$(mktemp)
  echo "chromium: installing the distribution's with apt (a minute)" >&2
  if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; } \
    >"$log" 2>&1 </dev/null || ! find_chromium; then
    echo "chromium: it could not be installed ($(tail -n 1 "$log")). Install Chromium, so that it is in PATH." >&2
    exit 1
  fi
fi
