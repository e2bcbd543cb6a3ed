"""On a machine with an NVIDIA GPU: two seconds are measured from the driver's sample buffer. Elsewhere it is skipped
(exit 77) with its reason. Reads only: no setting of the GPU is touched."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOL = os.environ["ERGOMETER_BIN"]


def main():
    if not os.path.exists("/dev/nvidiactl"):
        print("skipped: no NVIDIA GPU (/dev/nvidiactl is not there)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "r"
        subprocess.run([TOOL, "run", "-o", run, "--quiet", "--require", "gpu/0", "--", "sleep", "2"], check=True)
        summary = json.loads((run / "summary.json").read_text())
    gpus = [d for d in summary["nodes"][0]["domains"] if d["scope"] == "gpu" and d["in_total"]]
    assert gpus, summary["nodes"][0]["domains"]
    for gpu in gpus:
        assert gpu["energy_j"] > 2, gpu     # no card idles below 1 W
        assert gpu["coverage"] > 0.95, gpu
        assert 0 < gpu["uncertainty_j"] < gpu["energy_j"], gpu
    print(f"{len(gpus)} GPUs, {summary['run']['energy_j']:.1f} J in {summary['run']['duration_s']:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
