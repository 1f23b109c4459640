#!/bin/bash
# Makes sure that every Debian package of packaging/apt.txt is installed. Installs what is missing
# when it may (root, and apt is there); otherwise prints the one command to run, and fails.
# BOOTSTRAP=skip trusts that all of it is there under other names (another distribution, modules).
set -euo pipefail
cd "$(dirname "$0")"

[[ ${BOOTSTRAP:-} == skip ]] && exit 0

mapfile -t wanted < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' apt.txt)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<TEXT
Forebay needs these packages (names as in Debian 12), and this machine has no apt to get them with:

  ${wanted[*]}

Install what corresponds to them here, then run make again with BOOTSTRAP=skip.
TEXT
  exit 1
fi

# dpkg-query fails when it never heard of one of the names, and lists the others all the same.
installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${wanted[@]}" \
  2>/dev/null | sed -n 's/^installed //p' || true)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) \
  <(printf '%s\n' "$installed" | sort -u))
((${#missing[@]} == 0)) && exit 0

if ((EUID != 0)); then
  cat >&2 <<TEXT
Forebay needs ${#missing[@]} packages that are not installed. As root, run

  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}

and then make again.
TEXT
  exit 1
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get -o Acquire::Retries=3 -qq update
apt-get -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -qq install -y --no-install-recommends \
  "${missing[@]}"
