#!/usr/bin/env python3
"""Compiles each header of the project alone, twice included, so that none needs another to come first.
Usage: check_headers.py [--compiler CXX] [FOLDER ...]; exit 1 names each header that fails and shows its first error."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["src", "include", "apps", "tests/support"]


def check(compiler, header):
    name = header.relative_to(ROOT).as_posix()
    source = f'#include "{header}"\n#include "{header}"\n'
    language = ["-x", "c++", "-std=c++20"]
    if header.suffix == ".h":   # a public C header must be C as well
        run_c = subprocess.run(["cc", "-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                       f"-I{ROOT / 'include'}", "-"], input=source, text=True, capture_output=True)
        if run_c.returncode:
            return name, run_c.stderr
    run = subprocess.run([compiler, *language, "-Wall", "-Wextra", "-fsyntax-only", f"-I{ROOT / 'src'}",
                          f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}", f"-I{ROOT / 'apps'}",
                          '-DERGOMETER_SOURCE_DIR=""', '-DERGOMETER_BUILD_DIR=""', "-"],
                         input=source, text=True, capture_output=True)
    return (name, run.stderr) if run.returncode else (name, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "c++"))
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    options = parser.parse_args()
    headers = sorted(h for f in options.folders for h in (ROOT / f).rglob("*") if h.suffix in (".hpp", ".h"))
    if not headers:
        print("check_headers: no headers found", file=sys.stderr)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda h: check(options.compiler, h), headers))
    failed = [(name, error) for name, error in results if error]
    for name, error in failed:
        print(f"{name}: does not compile alone\n" + "\n".join(error.splitlines()[:6]))
    print(f"check_headers: {len(headers)} headers, {len(failed)} fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
