"""libergometer.so exports its interface and no symbol of the libraries inside it: symbols_test.py NM LIBRARY."""

import subprocess
import sys

# Strong symbols outside the interface bind a program's calls. Weak ones are instances of templates and inline
# functions, which are the same in every library that has them; even so none may come from a library of others.
FOREIGN = ("nlohmann", "fmt::", "CLI::", "toml::", "ZSTD", "XXH", "HUF_", "FSE_", "nvml")


def main():
    nm, library = sys.argv[1:]
    out = subprocess.run([nm, "-D", "-C", "--defined-only", library], stdout=subprocess.PIPE, check=True, text=True)
    symbols = [line.split(maxsplit=2)[1:] for line in out.stdout.splitlines()]
    wrong = [name for kind, name in symbols if kind not in "WVu" and not name.startswith("ergometer::Measurement::")]
    wrong += [name for kind, name in symbols if any(word in name for word in FOREIGN)]
    if not symbols or wrong:
        sys.exit("\n".join(["exported beyond the interface:", *wrong]) if symbols else "no symbols")


if __name__ == "__main__":
    main()
