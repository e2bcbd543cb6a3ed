# Sourced by demo, test and bench: installs what is missing, configures, and keeps account of the time.
# Provides: install_packages, install_optional, start_installing and wait_for_packages [HEADING], configure PRESET [OPTION ...], build PRESET TARGET..., phase NAME, print_phases.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros

phase_names=() phase_starts=()
phase() { phase_names+=("$1"); phase_starts+=("$(date +%s)"); }
print_phases() {
  local i end total=0
  echo "Where the time went:"
  phase_starts+=("$(date +%s)")
  for i in "${!phase_names[@]}"; do
    end=${phase_starts[i + 1]}
    printf '  %-28s %4d s\n' "${phase_names[i]}" $((end - phase_starts[i]))
    total=$((total + end - phase_starts[i]))
  done
  printf '  %-28s %4d s\n' total "$total"
}

missing_packages() {   # [HEADING]: of all, or of those above the line of packages.txt that begins with "# HEADING"
  local package last='$'
  [ -z "${1:-}" ] || last="/^# $1/"
  sed -n "1,${last}p" scripts/packages.txt | grep -v '^#' | while read -r package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

as_root=
install_packages() {   # [HEADING], as missing_packages
  if ! command -v dpkg-query >/dev/null; then
    echo "scripts: this is no Debian; install the counterparts of scripts/packages.txt yourself, then go on." >&2
    return
  fi
  local missing
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "scripts: not root and no sudo; as root: apt-get install" $missing >&2; exit 1; }
    as_root=sudo
  fi
  echo "Installing from Debian:" $missing
  local log
  log=$(mktemp)
  if ! { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "scripts: the packages above could not be installed; whole log: $log" >&2
    exit 1
  fi
  rm -f "$log"
}

# What only some tests need. A package whose set-up fails is taken off again, so that apt stays in order.
install_optional() {
  local missing=$(comm -23 <(missing_packages | sort) <(missing_packages optional | sort))
  command -v dpkg-query >/dev/null && [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] || as_root=sudo
  echo "Installing from Debian, for some tests:" $missing
  if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >/dev/null 2>&1; then
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get purge -q -y --autoremove $missing >/dev/null 2>&1 || true
    echo "scripts: they could not be installed, so tests that need them are skipped"
  fi
}

# As install_packages, beside other work: start_installing, then wait_for_packages, which ends the script if that failed. The
# password for sudo, if it wants one, is asked for before.
installing=
start_installing() {
  [ "$(id -u)" = 0 ] || [ -z "$(missing_packages "$@")" ] || ! command -v sudo >/dev/null || sudo -v
  install_packages "$@" &
  installing=$!
}
wait_for_packages() { wait "$installing"; }

quietly() {   # runs a command; shows its output only if it fails
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "scripts: failed: $*" >&2
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
}

configure() {
  local preset=$1
  shift
  quietly cmake --preset "$preset" "$@"
}
build() {   # on a terminal with the build's own progress line
  local preset=$1 show=quietly
  shift
  [ ! -t 1 ] || show=
  $show cmake --build --preset "$preset" ${1:+--target "$@"}
}
