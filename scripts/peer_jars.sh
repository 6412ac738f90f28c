#!/usr/bin/env bash
# Fetches the Delta JAR and what it needs beside Spark, with Maven, into a folder. Nothing is done where they are.
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

stamp="$folder/${delta//:/_}.complete"
[ -e "$stamp" ] && exit 0
command -v mvn >/dev/null || {
  echo "peer_jars: Maven (mvn) is needed to fetch $delta; on Debian: apt-get install maven" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
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
touch "$stamp"
