# Sourced by demo, test and bench: installs what is missing, configures, and keeps account of the time.
# Provides: install_packages [build], configure PRESET [OPTION ...], build PRESET TARGET..., phase NAME, print_phases.
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

missing_packages() {   # of all, or with "build" of those above the line that begins the tests' ones
  local package last='$'
  [ "${1:-}" != build ] || last='/^# tests/'
  sed -n "1,${last}p" scripts/packages.txt | grep -v '^#' | while read -r package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "scripts: this is no Debian; install the counterparts of scripts/packages.txt yourself, then go on." >&2
    return
  fi
  local missing sudo=
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "scripts: not root and no sudo; as root: apt-get install" $missing >&2; exit 1; }
    sudo=sudo
  fi
  echo "Installing from Debian:" $missing
  local log
  log=$(mktemp)
  if ! { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "scripts: the packages above could not be installed; whole log: $log" >&2
    exit 1
  fi
  rm -f "$log"
}

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
