#!/usr/bin/env bash
# Runs a command with JAVA_HOME set to a Java that Spark 4 runs on (17 or newer).
#
#   scripts/java.sh COMMAND [ARGUMENT...]
#
# Looks at $JAVA_HOME, then the java of $PATH, then where systems keep theirs (there the oldest that will do: it is
# the one Spark has been tested on longest). Where none is found and apt may install (root, or sudo that asks for no
# password), a headless one is installed; else it says what to install and exits with 1.
set -euo pipefail

least=17

# The home of the Java at $1 if it is new enough, with its version in front: "17 /usr/lib/jvm/...".
probe() {
  [ -x "$1" ] || return 0
  "$1" -XshowSettings:properties -version 2>&1 </dev/null | awk -v least="$least" '
    $1 == "java.home" { sub(/^[^=]*= */, ""); home = $0 }
    $1 == "java.specification.version" { version = $3 }
    END { if (home != "" && version + 0 >= least) print version, home }' || true
}

find_java() {
  local found
  for found in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)"; do
    found=$(probe "$found")
    if [ -n "$found" ]; then
      echo "${found#* }"
      return
    fi
  done
  for found in /usr/lib/jvm/*/bin/java /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
    probe "$found"
  done | sort -n | head -1 | cut -d' ' -f2-
}

# As root, or by a sudo that asks for no password. False where neither is to be had.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

install_java() {
  command -v apt-get >/dev/null || return 1
  as_root true 2>/dev/null || return 1
  echo "java.sh: no Java $least or newer was found; installing a headless one with apt-get" >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 </dev/null || return 1
  local package
  # The default may be older than $least, or the numbered one not offered any more: the first that works.
  for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$package" \
      >&2 </dev/null || continue
    [ -z "$(find_java)" ] || return 0
  done
  return 1
}

home=$(find_java)
if [ -z "$home" ]; then
  install_java || {
    cat >&2 <<TEXT
java.sh: Spark needs Java $least or newer and none was found in JAVA_HOME, PATH or /usr/lib/jvm. Install one, e.g.
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL:    sudo dnf install java-17-openjdk-headless
  macOS:           brew install openjdk@17    (and set JAVA_HOME to it)
then run this again, or set JAVA_HOME to where it is.
TEXT
    exit 1
  }
  home=$(find_java)
fi
JAVA_HOME=$home exec "$@"
