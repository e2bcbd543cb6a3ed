#!/usr/bin/env python3
"""Holds every #include of the project to the layer table below (ARCHITECTURE.md explains it). Exit 1 names each
include that points the wrong way. With --table it prints the table."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder -> project folders that it may include, itself aside. The order is bottom up.
LAYERS = {
    "src/base": [],
    "src/region": ["include/ergometer"],
    "src/model": ["src/base"],
    "src/device": ["src/model", "src/base"],
    "src/store": ["src/model", "src/base", "src/region"],
    "src/analysis": ["src/model", "src/base"],
    "src/report": ["src/model", "src/base"],
    "src/measure": ["src/device", "src/store", "src/model", "src/base"],
    "src/cluster": ["src/device", "src/store", "src/analysis", "src/model", "src/base"],
    "src/study": ["src/measure", "src/device", "src/store", "src/analysis", "src/model", "src/base"],
    "apps/library": ["src/measure", "src/device", "src/store", "src/analysis", "src/report", "src/model", "src/base",
                     "include/ergometer"],
    "apps/cli": ["src/study", "src/cluster", "src/measure", "src/device", "src/store", "src/analysis", "src/report", "src/region", "src/model",
                 "src/base", "include/ergometer"],
    "apps/daemon": ["src/device", "src/analysis", "src/model", "src/base"],
    "apps/slurm": ["src/base"],
    "workloads": ["include/ergometer"],
    "workloads/core": [],
    "workloads/load_lstm": ["workloads/core"],
    "workloads/vision": ["workloads/core"],
    "workloads/language": ["workloads/core"],
    "workloads/molecules": ["workloads/core"],
    "workloads/parallel": ["workloads/core"],
    "workloads/steps": ["workloads/core"],
    "workloads/engine": ["workloads/core", "workloads/parallel", "workloads/steps", "include/ergometer"],
    "workloads/app": ["workloads/core", "workloads/load_lstm", "workloads/vision", "workloads/language",
                      "workloads/molecules", "workloads/parallel", "workloads/steps", "workloads/engine",
                      "include/ergometer"],
    "include/ergometer": [],
}
# src/region and the public headers are for anybody's program: the standard library and the system only.
STANDARD_ONLY = {"src/region", "include/ergometer"}
# Backends see the sensor interface, never each other; the registry alone sees them all.
DEVICE_COMMON = {"device/host.hpp", "device/sensor.hpp", "device/kernel_file.hpp", "device/cpu_topology.hpp",
                 "device/cgroup.hpp", "device/proc_stat.hpp", "device/drm_card.hpp", "device/number_sensor.hpp",
                 "device/process_view.hpp", "device/process_roots.hpp", "device/control.hpp", "device/file_control.hpp",
                 "device/control_session.hpp", "device/node_meter.hpp", "device/tool.hpp"}
REGISTRY = "src/device/registry.cpp"

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
SOURCE = {".cpp", ".hpp", ".h", ".c", ".cu"}


def layer_of(path):
    """The table's row for a file or folder, by its path from the root."""
    fits = [row for row in LAYERS if path == row or path.startswith(row + "/")]
    return max(fits, key=len) if fits else None


def target_of(file, name):
    """Path from the root of an included project header, or None for one of the system or a library."""
    for base in (ROOT / "src", ROOT / "include", ROOT / "workloads", ROOT, file.parent):
        candidate = base / name
        if candidate.is_file():
            return candidate.resolve().relative_to(ROOT).as_posix()
    return None


def problems_of(file):
    here = file.relative_to(ROOT).as_posix()
    row = layer_of(here)
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        target = target_of(file, name) if quote == '"' else None
        where = f"{here}:{number}"
        if target is None:
            library = "/" in name and not name.startswith(("sys/", "linux/", "asm/", "netinet/", "arpa/"))
            if row in STANDARD_ONLY and (library or quote == '"'):
                yield f"{where}: {row} may use the standard library only, not <{name}>"
            continue
        to = layer_of(target)
        if to is None:
            yield f"{where}: {target} belongs to no layer"
        elif to != row and to not in LAYERS[row]:
            yield f"{where}: {row} may not include {to} ({name})"
        elif row == "src/device" == to and here.count("/") > 2 and name not in DEVICE_COMMON:
            backend = here.split("/")[2]
            if target.split("/")[2] != backend:
                yield f"{where}: backend {backend} may include only itself and {', '.join(sorted(DEVICE_COMMON))}"
        elif here.startswith("src/device/") and here.count("/") == 2 and here != REGISTRY and target.count("/") > 2:
            yield f"{where}: only {REGISTRY} may name a backend"


def main():
    if "--table" in sys.argv:
        for row, below in LAYERS.items():
            print(f"{row:18} -> {', '.join(below) or '(standard library and small vocabulary libraries)'}")
        return 0
    files = [f for row in LAYERS for f in sorted((ROOT / row).rglob("*"))
             if f.suffix in SOURCE and layer_of(f.relative_to(ROOT).as_posix()) == row]
    if not files:
        print("check_layers: no sources found", file=sys.stderr)
        return 1
    found = [problem for file in files for problem in problems_of(file)]
    for problem in found:
        print(problem)
    print(f"check_layers: {len(files)} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
