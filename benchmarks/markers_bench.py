#!/usr/bin/env python3
"""Times a pair of Python markers, active and inactive. Usage: markers_bench.py [PAIRS]"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))


def pair_ns(pairs):
    import ergometer

    region = ergometer.region("step")
    best = float("inf")
    for _ in range(5):
        begin = time.process_time_ns()
        for _ in range(pairs // 5):
            with region:
                pass
        best = min(best, (time.process_time_ns() - begin) / (pairs // 5))
    return best


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 200000
    if os.environ.get("ERGOMETER_BENCH") == "1":
        print("%.0f" % pair_ns(pairs))
        return
    with tempfile.TemporaryDirectory() as folder:
        for label, run in (("active", folder), ("inactive", "")):
            environment = dict(os.environ, ERGOMETER_RUN=run, ERGOMETER_BENCH="1")
            out = subprocess.run(
                [sys.executable, os.path.abspath(__file__), str(pairs)],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
            print("python marker pair, %s: %s ns" % (label, out.decode().strip()))


if __name__ == "__main__":
    main()
