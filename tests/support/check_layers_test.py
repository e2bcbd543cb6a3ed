"""check_layers.py must find what it is there to find: a wrong include planted in a copy of its rules' folders."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANTED = {
    "src/base/x.hpp": '#include "model/channel.hpp"\n',
    "src/analysis/x.hpp": '#include "device/sensor.hpp"\n',
    "src/device/nvml/x.hpp": '#include "device/rapl/rapl.hpp"\n',
    "src/device/host_x.hpp": '#include "device/nvml/nvml.hpp"\n',
    "src/region/x.hpp": '#include <fmt/format.h>\n',
    "workloads/x.hpp": '#include "base/result.hpp"\n',
}


def main():
    for place, text in PLANTED.items():
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for name in ("src", "apps", "include", "workloads", "tools"):
                shutil.copytree(ROOT / name, copy / name)
            (copy / place).write_text(text)
            run = subprocess.run([sys.executable, copy / "tools/check_layers.py"], text=True, capture_output=True)
            if run.returncode != 1 or f"{place}:1:" not in run.stdout:
                print(f"not found: {place}: {text}{run.stdout}")
                return 1
    print(f"{len(PLANTED)} wrong includes found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
