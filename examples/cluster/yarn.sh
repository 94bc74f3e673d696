#!/bin/sh
# One run of ingest on YARN. The driver runs here; executors get this Python, with everything in it, as an archive.
#
#   python3 -m venv ~/kdissect && ~/kdissect/bin/pip install 'kafka-dissector[spark]' venv-pack
#   HADOOP_CONF_DIR=/etc/hadoop/conf ./yarn.sh ~/kdissect s3://captures/today/ s3://tables/kafka
#
# What follows the three words goes to kdissect, such as --conf spark.executor.instances=5.
set -eu
venv=$1 captures=$2 out=$3
shift 3
archive=${TMPDIR:-/tmp}/kdissect-python.tar.gz
[ -e "$archive" ] || "$venv/bin/venv-pack" --quiet --prefix "$venv" --output "$archive"
exec "$venv/bin/kdissect" ingest "$captures" --out "$out" --master yarn \
  --conf spark.yarn.dist.archives="$archive#python" \
  --conf spark.pyspark.python=./python/bin/python \
  --conf spark.pyspark.driver.python="$venv/bin/python" \
  --conf spark.executor.instances=20 \
  --conf spark.executor.cores=4 \
  --conf spark.executor.memory=4g \
  --conf spark.executor.memoryOverhead=3g "$@"
