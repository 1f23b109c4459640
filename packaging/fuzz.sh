#!/bin/bash
# fuzz.sh JOBS SECONDS SEED: runs every fuzzer of build-asan/ for SECONDS, JOBS at a time. Starts from
# the corpus beside its source (NAME_corpus/), if there is one; what it finds goes to
# build-asan/findings/. Fails if any input crashes, hangs for 10 s or takes 1 GiB.
set -euo pipefail
cd "$(dirname "$0")/.."

run_one() {
  local program=$1 seconds=$2 seed=$3 name grown log seeds
  name=$(basename "$program")
  grown=build-asan/corpus/$name
  log=build-asan/findings/$name.log
  mkdir -p "$grown" build-asan/findings
  mapfile -t seeds < <(find core -type d -name "${name}_corpus")
  if "$program" -max_total_time="$seconds" -seed="$seed" -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="build-asan/findings/$name-" \
    "$grown" "${seeds[@]}" >"$log" 2>&1; then
    printf '%s: %s inputs, no finding\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    tail -n 40 "$log"
    printf '%s: FAILED; the input is in build-asan/findings/\n' "$name"
    return 1
  fi
}
export -f run_one

mapfile -d '' -t programs < <(find build-asan/fuzz -maxdepth 1 -type f -executable -print0 | sort -z)
if ((${#programs[@]} == 0)); then
  echo 'build-asan/fuzz holds no fuzzer' >&2
  exit 1
fi
printf '%s\0' "${programs[@]}" | xargs -0 -P "$1" -I{} bash -euo pipefail -c 'run_one "$@"' - {} "$2" "$3"
