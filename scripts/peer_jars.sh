#!/usr/bin/env bash
# Fetches the JARs of the peers, with Maven, into a folder: Delta's with what it needs beside Spark, and the library by
# which IndexTables writes and reads splits. Nothing is done where they are; what a folder lacks is added to it.
#
#   scripts/peer_jars.sh FOLDER
#
# Spark's own artifacts are excluded: the peer's venv brings Spark. `spark.jars.packages` is not used because it
# fails on a local Maven repository in which a POM is present without its JAR.
set -euo pipefail

folder=${1:?usage: scripts/peer_jars.sh FOLDER}
delta=io.delta:delta-spark_4.2_2.13:4.4.0
# The JARs that the session loads; the rest of the dependencies are in Spark already.
wanted=(delta-spark_ delta-storage- delta-kernel-api- delta-kernel-defaults- delta-kernel-unitycatalog-
  unitycatalog-client- unitycatalog-hadoop- jts-core-)
# The newest that is published, with its native library inside: for this platform alone.
tantivy=io.indextables:tantivy4java:0.31.0:jar:linux-x86_64

delta_stamp="$folder/${delta//:/_}.complete"
tantivy_stamp="$folder/${tantivy//:/_}.complete"
if [ -e "$delta_stamp" ] && [ -e "$tantivy_stamp" ]; then exit 0; fi
command -v mvn >/dev/null || {
  echo "peer_jars: Maven (mvn) is needed to fetch $delta and $tantivy; on Debian: apt-get install maven" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fetch_delta() {
  local group artifact version prefix
  IFS=: read -r group artifact version <<<"$delta"
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peer</groupId>
  <artifactId>peer-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>$group</groupId>
      <artifactId>$artifact</artifactId>
      <version>$version</version>
      <exclusions>
        <exclusion><groupId>org.apache.spark</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
  </dependencies>
</project>
POM
  mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$work/jars" </dev/null
  rm -rf "$folder" && mkdir -p "$folder"
  for prefix in "${wanted[@]}"; do
    cp "$work/jars/$prefix"*.jar "$folder/"
  done
  touch "$delta_stamp"
}

fetch_tantivy() {
  (cd "$work" && mvn -q -B dependency:copy -Dartifact="$tantivy" -DoutputDirectory="$work/tantivy" </dev/null)
  cp "$work/tantivy/"*.jar "$folder/"
  touch "$tantivy_stamp"
}

echo "peer_jars: fetching $delta and $tantivy with Maven into $folder (a minute or two)"
[ -e "$delta_stamp" ] || fetch_delta
[ -e "$tantivy_stamp" ] || fetch_tantivy
