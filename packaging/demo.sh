#!/bin/bash
# The main job on bundled workloads: each runs stock and through Forebay in interleaved pairs, in a
# directory of its own that is removed at the end. The reports stay in build/demo/.
# Expects `make build` to have been run. DEMO_PAIRS sets the number of pairs, DEMO_REPORTS another
# place for the reports.
set -euo pipefail
cd "$(dirname "$0")/.."

forebay=$PWD/.venv/bin/forebay
pairs=${DEMO_PAIRS:-6}
reports=${DEMO_REPORTS:-$PWD/build/demo}
data=$(mktemp -d -t forebay-demo.XXXXXX)
trap 'rm -rf "$data"' EXIT
mkdir -p "$reports"

# What it finds may concern other programs than these: the comparisons show what matters here.
"$forebay" doctor "$data" || echo 'The demo goes on all the same.'
for workload in lattice4d interleave; do
  printf '\n== %s: 2 ranks, MPICH, %s pairs\n\n' "$workload" "$pairs"
  timeout 600 "$forebay" compare -n "$pairs" --report "$reports/$workload" -- \
    mpiexec.mpich -n 2 "build/proxies/mpich/$workload" "$data/$workload.dat"
done
