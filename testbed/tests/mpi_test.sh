#!/bin/sh
# Mounts a testbed, runs a command on it, and ends it.
# Usage: mpi_test.sh FUSE_PROBE TESTBEDFS COMMAND...; the command gets the path of a file on the
# mount as its last argument. Ends with 77 (skipped) where FUSE cannot be used.
set -eu
probe=$1
testbedfs=$2
shift 2
"$probe"

directory=$(mktemp -d)
mkdir "$directory/backing" "$directory/mount"
end() {
  fusermount3 -u "$directory/mount" 2>/dev/null || fusermount3 -u -z "$directory/mount" || true
  rm -rf "$directory"
}
trap end EXIT

"$testbedfs" --backing "$directory/backing" --bandwidth 100MiB/s --latency 200us --lock-cost 200us \
  "$directory/mount"
"$@" "$directory/mount/shared"
cat "$directory/mount/.forebay-testbed/counters.json"
