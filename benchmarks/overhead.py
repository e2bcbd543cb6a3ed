#!/usr/bin/env python3
"""What measuring costs a training: usage overhead.py ERGOMETER WORKLOAD_PROGRAM OUT [--pairs 10] [-- TRAIN OPTIONS].

Trains the same network with and without `ergometer run`, in turns and each pair in random order, and compares the
samples a second that the training prints of its last epoch. The interval of the medians' difference is a bootstrap over
the pairs. Nothing here is a test: numbers are printed, never asserted."""
import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys

DEFAULT = ["resnet50", "--data", "synthetic", "--device", "cuda", "--precision", "bf16", "--epochs", "2", "--steps",
           "120", "--no-validation"]
SPEED = re.compile(r"([0-9][0-9.,]*) samples/s")


def speed(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = SPEED.findall(done.stdout + done.stderr)
    if done.returncode != 0 or not found:
        sys.exit("overhead: %s ended with %d and said\n%s%s" % (" ".join(command), done.returncode, done.stdout,
                                                                done.stderr))
    return float(found[-1].replace(",", ""))


def difference(pairs):
    """Relative difference of the medians of speed, measured minus bare."""
    bare = statistics.median(p[0] for p in pairs)
    return statistics.median(p[1] for p in pairs) / bare - 1


def bootstrap(pairs, draws=4000):
    chance = random.Random(1)
    values = sorted(difference(chance.choices(pairs, k=len(pairs))) for _ in range(draws))
    return values[int(0.025 * draws)], values[int(0.975 * draws)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ergometer")
    parser.add_argument("workload")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("train", nargs="*", default=DEFAULT)
    options = parser.parse_args()
    train = [options.workload, "train", *options.train]
    pairs, shares, chance = [], [], random.Random(3)
    for index in range(options.pairs):
        run = options.out / ("pair%02d" % index)
        measured = [options.ergometer, "run", "-o", str(run), "--quiet", "--", *train]
        found = {}
        for name, command in chance.sample([("bare", train), ("measured", measured)], 2):
            found[name] = speed(command)
        pairs.append((found["bare"], found["measured"]))
        shown = subprocess.run([options.ergometer, "show", str(run), "--json"], stdout=subprocess.PIPE, check=True)
        shares.append(json.loads(shown.stdout)["overhead"]["cpu_share"])
        print("pair %2d: %.1f bare, %.1f measured (%+.3f %%)" % (index + 1, *pairs[-1],
                                                               100 * (pairs[-1][1] / pairs[-1][0] - 1)), flush=True)
    low, high = bootstrap(pairs)
    print("medians: %.1f bare, %.1f measured: %+.3f %% (95 %% interval %+.3f to %+.3f %%), %d pairs; CPU share of the "
          "tool %.2f %% of a core (median)" % (statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs),
                                    100 * difference(pairs), 100 * low, 100 * high, len(pairs),
                                    100 * statistics.median(shares)))


if __name__ == "__main__":
    main()
