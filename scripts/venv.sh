#!/usr/bin/env bash
# Makes a virtual environment with this package, editable and with all extras, and one of its dependency groups.
#
#   scripts/venv.sh FOLDER GROUP        (the groups are in pyproject.toml)
#
# Takes the newest Python from 3.11 on that is on this machine. Run again on an existing folder it brings the folder
# up to date with pyproject.toml.
set -euo pipefail

folder=${1:?usage: scripts/venv.sh FOLDER GROUP}
group=${2:?usage: scripts/venv.sh FOLDER GROUP}

# A name on the PATH may be a version manager's stand-in for a Python that is not there: ask, do not look.
will_do() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 </dev/null; }

find_python() {
  local python
  for python in python3.13 python3.12 python3.11 python3 python; do
    if will_do "$python"; then
      echo "$python"
      return
    fi
  done
  cat >&2 <<'TEXT'
venv.sh: tablefeed needs Python 3.11 or newer and none was found. Install one, e.g.
  Debian, Ubuntu:  sudo apt-get install python3 python3-venv
  Fedora, RHEL:    sudo dnf install python3.12
  macOS:           brew install python@3.13
then run this again.
TEXT
  return 1
}

# Debian ships Python without ensurepip; the package that holds it is named for the version.
install_ensurepip() {
  local package
  package="python$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
  local root=()
  [ "$(id -u)" = 0 ] || root=(sudo -n)
  if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
    echo "venv.sh: $1 cannot make virtual environments: install $package (or python3-venv) and run this again" >&2
    return 1
  fi
  echo "venv.sh: installing $package with apt-get" >&2
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 </dev/null
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" >&2 </dev/null
}

if ! will_do "$folder/bin/python"; then
  rm -rf "$folder"
  python=$(find_python)
  "$python" -c 'import ensurepip, venv' 2>/dev/null || install_ensurepip "$python"
  echo "venv.sh: making $folder with $("$python" -V)"
  "$python" -m venv "$folder"
fi
pip=("$folder/bin/python" -m pip --disable-pip-version-check --no-input)
# One line for each package that is fetched or built. What is there already is not worth a line.
# Most modules are never imported: Python compiles the others when they are, which saves 35 s of one core here.
install() {
  "${pip[@]}" install --no-compile "$@" </dev/null | sed -un '/^ *\(Collecting\|Downloading\|Building\|Installing\)/p'
}
echo "venv.sh: installing tablefeed with its extras and the group '$group' into $folder (PySpark is large: minutes)"
install -q --upgrade "pip>=25.1" # the first that knows dependency groups
install -e '.[all]' --group "$group"
echo "venv.sh: $folder is ready after $SECONDS s"
