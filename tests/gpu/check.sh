#!/usr/bin/env bash
# What a machine with an NVIDIA GPU and PyTorch shows of the tool: sensors, a measured PyTorch training with Python
# markers, the reference workload on CUDA, the delay of a start. Read-only towards the GPU: no setting is changed.
# usage: tests/gpu/check.sh BIN_DIR OUT_DIR     (BIN_DIR holds ergometer and print_time)
set -uo pipefail
bin=$(cd "$1" && pwd) out=$2
cd "$(dirname "$0")/../.."
export PYTHONPATH=$PWD/python PYTHONUNBUFFERED=1
say() { printf '\n=== %s\n' "$*"; }
run() { say "\$ $*"; "$@"; echo "(exit $?)"; }

say "machine"
date -u
nvidia-smi --query-gpu=name,uuid,driver_version,memory.total,power.limit,clocks.sm,power.draw --format=csv
uname -r; nproc; python3 -c 'import torch; print("torch", torch.__version__, "cuda", torch.version.cuda)'

run "$bin/ergometer" sensors
run "$bin/ergometer" doctor
run "$bin/ergometer" run -o "$out/resnet50" --idle-before 3s --idle-after 2s -- python3 tests/gpu/train_resnet.py
run "$bin/ergometer" show "$out/resnet50" --by phase
run "$bin/ergometer" show "$out/resnet50" --by domain
"$bin/ergometer" show "$out/resnet50" --json >"$out/resnet50.json"

say "workload on CUDA"
if cmake -S workloads -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')" >"$out/workloads-build.log" 2>&1 &&
    cmake --build build/gpu >>"$out/workloads-build.log" 2>&1; then
  workload=$(find build/gpu -name ergometer-workload -type f | head -1)
  run "$workload" data make load_lstm build/load
  run "$bin/ergometer" run -o "$out/load_lstm" -- sh -c "$workload train load_lstm --data build/load --epochs 3 --device cuda --checkpoint build/lstm.pt && $workload infer load_lstm --data build/load --device cuda --checkpoint build/lstm.pt"
else
  tail -n 40 "$out/workloads-build.log"
fi

run "$bin/ergometer" run -o "$out/sleep" -- sleep 30

say "delay of a start, ms, 10 pairs (direct, under run)"
for i in $(seq 10); do
  python3 - "$bin" "$out/delay$i" <<'PY'
import subprocess, sys, time
bin, out = sys.argv[1:]
def delay(argv):
    begin = time.monotonic_ns()
    return (int(subprocess.run(argv, stdout=subprocess.PIPE).stdout) - begin) * 1e-6
print(f"{delay([bin + '/print_time']):.1f} {delay([bin + '/ergometer', 'run', '-o', out, '--quiet', '--', bin + '/print_time']):.1f}")
PY
  rm -rf "$out/delay$i"
done
tar -C "$out" -czf "$out/runs.tar.gz" resnet50 $([ -d "$out/load_lstm" ] && echo load_lstm)
rm -rf "$out/resnet50" "$out/load_lstm" "$out/sleep"
