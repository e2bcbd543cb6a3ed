#!/usr/bin/env bash
# Precise energy on a machine with an NVIDIA GPU and PyTorch: what calibrate finds, short regions beside counter
# differences, what measuring costs. Read-only towards the GPU: no setting is changed.
# usage: tests/gpu/energy.sh ERGOMETER OUT_DIR STAGE...     stages: calibrate, regions, overhead (after workloads.sh build)
set -uo pipefail
ergometer=$(realpath "$1") out=$2
shift 2
cd "$(dirname "$0")/../.."
export PYTHONUNBUFFERED=1
say() { printf '\n=== %s\n' "$*"; }

calibrate() {
  "$ergometer" calibrate --device gpu/0 -o "$out/calibration" --profiles "$out/profiles"
  cat "$out"/profiles/*.toml
}
regions() { python3 benchmarks/live_regions.py "$ergometer" "$out/regions"; }
overhead() { python3 benchmarks/overhead.py "$ergometer" build/gpu/bin/ergometer-workload "$out" --pairs "${PAIRS:-12}"; }

nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.sm --format=csv,noheader
for stage in "$@"; do
  say "$stage"
  $stage 2>&1
done
