#!/usr/bin/env python3
"""Short regions on a live NVIDIA GPU, beside a counter read at both ends: usage live_regions.py ERGOMETER OUT [options].

Trains ResNet-50 in PyTorch under `ergometer run`. Thirty regions each of 4, 1, 0.3 and 0.1 s (whole training steps) lie
first in a training that never pauses, then, of 0.3 and 0.1 s, between pauses of random length. Around each region the
same process reads NVML's energy counter, as tools do that measure by counter differences. Truth of the first series is
the mean power of the whole series times the region's time; the second has none, so only its spread is told.

Reads the GPU only; no setting is changed. Nothing here is a test: numbers are printed with their spread."""
import argparse
import ctypes
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import ergometer  # noqa: E402

STEADY = (4.0, 1.0, 0.3, 0.1)
PAUSED = (0.3, 0.1)


# --- the measured process ---


class Counter:
    """NVML's total energy of GPU 0, in joules."""

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.nvml.nvmlInit_v2())
        self.device = ctypes.c_void_p()
        self.check(self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)))

    @staticmethod
    def check(code):
        if code != 0:
            raise RuntimeError("NVML answers %d" % code)

    def read(self):
        """(joules, seconds that the call took)"""
        value = ctypes.c_ulonglong()
        begin = time.perf_counter()
        self.check(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)))
        return value.value * 1e-3, time.perf_counter() - begin


def training(batch):
    import torch
    import torchvision

    torch.backends.cudnn.benchmark = True
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device="cuda")

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        # One step ahead of the device and no more: the device never waits for Python, a region's end never waits long.
        event = torch.cuda.Event()
        event.record()
        if queued:
            queued.pop().synchronize()
        queued.append(event)

    queued = []
    for _ in range(20):
        step()
    return step, torch.cuda.synchronize


def measured_region(name, length, index, training, counter):
    step, settle = training
    with ergometer.region("probe") as probe:
        before, cost_before = counter.read()
        begin = time.monotonic()
        with ergometer.region(name, index=index):
            while time.monotonic() - begin < length:
                step()
            settle()
        after, cost_after = counter.read()
        probe.set("counter_j", after - before)
        probe.set("counter_cost_s", cost_before + cost_after)


def marker_cost():
    """Seconds of one begin and end, a median of blocks of a thousand."""
    blocks = []
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(1000):
            with ergometer.region("cost"):
                pass
        blocks.append((time.perf_counter() - begin) / 1000)
    return statistics.median(blocks)


def work(options):
    counter, trained, random_pause = Counter(), training(options.batch), random.Random(7)
    for length in STEADY:
        with ergometer.region("steady", index=int(length * 1000)):
            for index in range(options.repeats):
                measured_region("region", length, index, trained, counter)
    for length in PAUSED:
        with ergometer.region("paused", index=int(length * 1000)):
            for index in range(options.repeats):
                time.sleep(random_pause.uniform(0.25, 0.75))
                measured_region("region", length, index, trained, counter)
    print("MARKER %.3e" % marker_cost())


# --- the table ---


def gpu_energy(region):
    return next((d["energy_j"] for d in region["domains"] if d["domain"] == "gpu/0"), None)


def spread(values):
    return statistics.stdev(values) / statistics.mean(values)


def series_rows(summary, kind, length):
    prefix = "%s[%d]" % (kind, round(length * 1000))
    whole = next(r for r in summary["regions"] if r["path"] == prefix)
    inside = [r for r in summary["regions"] if r["path"].startswith(prefix + "/")]
    regions = [r for r in inside if r["name"] == "region"]
    probes = [r for r in inside if r["name"] == "probe"]
    regions.sort(key=lambda r: r["t_begin_s"])
    probes.sort(key=lambda r: r["t_begin_s"])
    if len(regions) != len(probes) or not regions:
        sys.exit("live_regions: %d regions and %d probes below %s" % (len(regions), len(probes), prefix))
    ours = [gpu_energy(r) / r["duration_s"] for r in regions]
    counter = [p["metrics"]["counter_j"] / r["duration_s"] for p, r in zip(probes, regions)]
    half = [r["uncertainty_j"] / r["duration_s"] for r in regions]
    cost = statistics.median(p["metrics"]["counter_cost_s"] for p in probes)
    truth = gpu_energy(whole) / whole["duration_s"] if kind == "steady" else None
    return ours, counter, half, cost, truth


def report(summary, marker, out):
    print("series  length   truth W   by ergometer: ratio (spread)  interval holds   by counter difference: ratio (range, spread)   "
          "two counter reads")
    for kind, lengths in (("steady", STEADY), ("paused", PAUSED)):
        for length in lengths:
            ours, counter, half, cost, truth = series_rows(summary, kind, length)
            base = truth or statistics.mean(ours)
            inside = sum(abs(o - base) <= h for o, h in zip(ours, half))
            print("%-7s %4.1f s  %8.1f   %.4f (%.2f %%)   %2d of %2d %s  %.4f (%.2f to %.2f, %.2f %%)   %.1f ms" % (
                kind, length, base, statistics.mean(ours) / base, 100 * spread(ours), inside, len(ours),
                "" if truth else "(of their mean)", statistics.mean(counter) / base, min(counter) / base,
                max(counter) / base, 100 * spread(counter), cost * 1e3), file=out)
    print("a marker pair in Python: %.2f us" % (marker * 1e6), file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ergometer", nargs="?", help="the program")
    parser.add_argument("out", nargs="?", help="folder of the run")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--show", action="store_true", help="only the table of a run that is there")
    options = parser.parse_args()
    if options.work:
        return work(options)
    if not options.show:
        command = [options.ergometer, "run", "-o", options.out, "--quiet", "--", sys.executable, __file__, "--work",
                   "--batch", str(options.batch), "--repeats", str(options.repeats)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ})
        pathlib.Path(options.out, "marker_s").write_text(done.stdout.split("MARKER")[1].strip())
    shown = subprocess.run([options.ergometer, "show", options.out, "--json"], stdout=subprocess.PIPE, check=True).stdout
    report(json.loads(shown), float(pathlib.Path(options.out, "marker_s").read_text()), sys.stdout)


if __name__ == "__main__":
    main()
