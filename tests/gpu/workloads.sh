#!/usr/bin/env bash
# The reference workloads on a machine with an NVIDIA GPU and PyTorch: builds them against that PyTorch's LibTorch,
# compares each network with its Python reference, and times training beside PyTorch eager. Read-only towards the GPU.
# usage: tests/gpu/workloads.sh OUT_DIR STAGE...     stages: build, fused, parity, smoke, speed (EXTRA=folder of headers and
# libraries that the machine lacks, UTF8PROC among them; NETWORKS, PRECISION, PAIRS, SECONDS_EACH for speed)
set -uo pipefail
out=$1
shift
cd "$(dirname "$0")/../.."
export PYTHONUNBUFFERED=1
build=build/gpu
program=$build/bin/ergometer-workload
extra=${EXTRA:+$(cd "$EXTRA" && pwd)}
say() { printf '\n=== %s\n' "$*"; }

build() {
  local arguments=(-S workloads -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')")
  [ -n "$extra" ] && arguments+=(-DUTF8PROC_INCLUDE="$extra" -DUTF8PROC_LIBRARY="$extra/libutf8proc.a")
  local begin=$SECONDS
  cmake "${arguments[@]}" >"$out/build.log" 2>&1 && cmake --build $build -- -k 0 >>"$out/build.log" 2>&1
  local code=$?
  echo "build: exit $code, $((SECONDS - begin)) s"
  [ $code = 0 ] || grep -E "error|FAILED|undefined" "$out/build.log" | head -n 40
  return $code
}

fused() { $build/bin/ergometer-fused-norm-check; }

parity() {
  mkdir -p build/parity
  for area in ${AREAS:-vision language molecules load_lstm}; do
    python3 tests/parity/$area.py build/parity >"$out/parity-$area.log" 2>&1 || tail -n 5 "$out/parity-$area.log"
  done
  for file in build/parity/*.pt; do
    for device in ${DEVICES:-cuda cpu}; do
      $build/bin/ergometer-workload-parity "$(basename "$file" .pt)" "$file" --device $device 2>&1
    done
  done
}

smoke() {
  for name in resnet50 vgg16 inception_v3 xray_vgg19 bert_base distilbert schnet dimenet pna load_lstm; do
    for precision in ${PRECISIONS:-bf16}; do
      echo "\$ train $name --precision $precision"
      timeout 120 $program train $name --data synthetic --device cuda --epochs 2 --steps 20 --precision $precision \
        --no-validation 2>&1 | tail -n 4
    done
    timeout 120 $program infer $name --data synthetic --device cuda --steps 10 --precision bf16 2>&1 | tail -n 3
  done
}

speed() {
  python3 benchmarks/workload_speed.py $program --networks "${NETWORKS:?}" --precision "${PRECISION:-bf16}" \
    --pairs "${PAIRS:-5}" --seconds "${SECONDS_EACH:-2}" --json "$out/speed-${PRECISION:-bf16}.json" ${SPEED_OPTIONS:-}
}

nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.sm --format=csv,noheader
for stage in "$@"; do
  say "$stage"
  begin=$SECONDS
  $stage || [ "$stage" != build ] || exit 1
  echo "($stage: $((SECONDS - begin)) s)"
done
