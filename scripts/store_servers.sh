#!/usr/bin/env bash
# Fetches the servers of object stores that the tests start, into a folder: fake-gcs-server (Google Cloud Storage) and
# versitygw (S3) are built by Go, azurite (Azure Blob Storage) is installed by npm. Nothing is done where they are.
#
#   scripts/store_servers.sh FOLDER [SERVER...]        (all of them where none is named)
#
# Where Go or npm is absent, or a server cannot be had, one line says so, and the tests skip that server.
set -uo pipefail

folder=${1:?usage: scripts/store_servers.sh FOLDER [SERVER...]}
shift
wanted=${*:-fake-gcs-server versitygw azurite}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
servers=(
  "go github.com/fsouza/fake-gcs-server@v1.56.1"
  "go github.com/versity/versitygw/cmd/versitygw@v1.8.0"
  "npm azurite@3.35.0"
)

fetch() {
  case $1 in
    go) GOBIN="$folder/bin" go install "$2" ;;
    npm) npm install --silent --no-audit --no-fund --prefix "$folder" "$2" ;;
  esac
}

for server in "${servers[@]}"; do
  read -r tool package <<<"$server"
  name=${package%@*} stamp="$folder/${package//\//_}.complete"
  if [[ " $wanted " != *" ${name##*/} "* || -e $stamp ]]; then continue; fi
  if ! command -v "$tool" >/dev/null; then
    echo "store_servers: left out: $package, because $tool is not installed; its tests are skipped"
    continue
  fi
  echo "store_servers: fetching $package with $tool (some minutes)"
  if fetch "$tool" "$package" </dev/null >"$folder/fetch.log" 2>&1; then
    touch "$stamp"
  else
    echo "store_servers: left out: $package could not be fetched ($(tail -n 1 "$folder/fetch.log")); its tests are skipped"
  fi
done
