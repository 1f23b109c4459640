#!/bin/bash
# Puts the package `forebay`, with the native parts that build/ holds, into .venv, if anything of it
# changed since the last time. The wheel is made in the tree of the release preset with the same
# settings, so that nothing is compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=.venv/.installed
sources=(pyproject.toml toolkit/forebay)
for native in build/lib build/bin/forebay-cache build/bin/forebay-pages build/testbed/forebay-testbedfs \
  build/share; do
  [[ ! -e $native ]] || sources+=("$native")
done
if [[ -e $stamp && -x .venv/bin/forebay ]]; then
  changed=$(find "${sources[@]}" -type f -newer "$stamp" -not -path '*/__pycache__/*' -print -quit)
  [[ -n $changed ]] || exit 0
fi

# What changes while the wheel is made is newer than the stamp, and found the next time.
touch "$stamp.next"
.venv/bin/python -m pip --disable-pip-version-check install --quiet \
  --no-build-isolation --no-deps --no-index --force-reinstall \
  --config-settings=build-dir=build \
  --config-settings=cmake.args=--preset=release \
  --config-settings=cmake.define.FOREBAY_TESTS=ON \
  --config-settings=cmake.define.FOREBAY_PROXIES=ON \
  .
mv "$stamp.next" "$stamp"
