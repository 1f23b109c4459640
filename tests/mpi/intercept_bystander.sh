#!/bin/sh
# Goal: a process without MPI runs under the preload as if it were not there.
# Method: a shell and its children, with stdout compared and stderr required to be empty; no back end
# may be mapped.
# Usage: intercept_bystander.sh LIBFOREBAY
set -eu
output=$(LD_PRELOAD="$1" sh -c 'echo one; ls / >/dev/null; cat /proc/self/maps' 2>&1)
case "$output" in
  one*) ;;
  *) echo "unexpected output: $output"; exit 1 ;;
esac
case "$output" in
  *libforebay.so*) ;;
  *) echo "the preload was not there"; exit 1 ;;
esac
case "$output" in
  *libforebay-*) echo "a back end was loaded without MPI"; exit 1 ;;
esac
case "$output" in
  *ERROR*|*"forebay:"*) echo "something was printed: $output"; exit 1 ;;
esac
