#!/usr/bin/env python3
"""Times what users wait for and prints it beside its target: usage bench.py BIN_DIR FAKE_NVML [--quick].

Nothing here is a test: numbers are printed with their spread, never asserted. --quick runs everything once, small,
so that the benchmarks themselves keep working."""
import argparse
import heapq
import json
import os
import pathlib
import random
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

RAPL_ZONES = 2


def fake_machine(folder, gpus):
    """A host root with two RAPL packages and the real /proc, and a scenario of GPUs for the fake NVML."""
    root = pathlib.Path(folder) / "root"
    for zone in range(RAPL_ZONES):
        path = root / f"sys/class/powercap/intel-rapl:{zone}"
        path.mkdir(parents=True)
        (path / "name").write_text(f"package-{zone}\n")
        (path / "energy_uj").write_text("1000000\n")
        (path / "max_energy_range_uj").write_text("262143328850\n")
        (path / "constraint_0_max_power_uw").write_text("205000000\n")
    (root / "proc").symlink_to("/proc")
    scenario = pathlib.Path(folder) / "gpus.scenario"
    scenario.write_text(f"gpus = {gpus}\n")
    return root, scenario


def environment(scenario):
    return {**os.environ, "ERGOMETER_FAKE_NVML": str(scenario)}


def run_command(options, folder, name, *command, extra=()):
    return [str(options.bin / "ergometer"), "run", "-o", str(pathlib.Path(folder) / name), "--quiet", *extra, "--",
            *command]


def quantiles(values, scale, digits=1):
    values = sorted(v * scale for v in values)
    return f"{statistics.median(values):.{digits}f} ({values[0]:.{digits}f} to {values[-1]:.{digits}f})"


def start_delay(options, row):
    repeats = 3 if options.quick else 25
    helper = str(options.bin / "print_time")
    with tempfile.TemporaryDirectory() as folder:
        root, scenario = fake_machine(folder, 8)
        extra = ["--host-root", str(root), "--nvml", str(options.nvml)]
        delays = {"this machine": [], "8 fake GPUs, 2 packages": []}
        for i in range(repeats):
            for kind, more in (("this machine", ()), ("8 fake GPUs, 2 packages", extra)):
                def delay(argv):
                    begin = time.monotonic_ns()
                    out = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         env=environment(scenario), check=True).stdout
                    return (int(out) - begin) * 1e-9
                direct = delay([helper])
                wrapped = delay(run_command(options, folder, f"d{i}{len(more)}", helper, extra=more))
                delays[kind].append(wrapped - direct)
        for kind, values in delays.items():
            row(f"start of COMMAND delayed, {kind} (ms)", quantiles(values, 1e3), "15")


def overhead(options, row):
    """Two runs of different length tell what starting and ending cost and what goes on between."""
    short, long = (1, 3) if options.quick else (10, 40)
    cpu_s = {}
    with tempfile.TemporaryDirectory() as folder:
        root, scenario = fake_machine(folder, 8)
        for length in (short, long):
            name = f"o{length}"
            argv = run_command(options, folder, name, "sleep", str(length),
                               extra=["--host-root", str(root), "--nvml", str(options.nvml)])
            subprocess.run(argv, env=environment(scenario), stderr=subprocess.DEVNULL, check=True)
            run = json.loads((pathlib.Path(folder) / name / "run.json").read_text())
            cpu_s[length] = run["overhead"]["cpu_s"]
    steady = (cpu_s[long] - cpu_s[short]) / (long - short)
    row("CPU of the tool, 8 fake GPUs + 2 packages, while it runs (% of one core)", f"{steady * 100:.2f}", "0.5")
    row("... to start and to end (s of CPU)", f"{cpu_s[short] - steady * short:.3f}", "")
    row(f"... all of a run of {long} s (% of one core)", f"{cpu_s[long] / long * 100:.2f}", "0.5")
    row("memory of the tool (MiB, peak)", f"{run['overhead']['max_rss_bytes'] / 2**20:.1f}", "40")


def last_times(folder):
    """Last time of each sample file, as another program would read it: with zstd."""
    for file in pathlib.Path(folder).glob("nodes/*/samples/*.csv.zst"):
        text = subprocess.run(["zstd", "-dcq", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        lines = [line for line in text.decode().splitlines() if line[:1].isdigit()]
        if lines:
            yield file.name, int(lines[-1].split(",")[0])


def lost_after_kill(options, row):
    losses, opened = [], 0
    repeats = 1 if options.quick else 8
    for i in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            root, scenario = fake_machine(folder, 8)
            argv = run_command(options, folder, "k", "sleep", "20",
                               extra=["--host-root", str(root), "--nvml", str(options.nvml)])
            tool = subprocess.Popen(argv, env=environment(scenario), start_new_session=True)
            time.sleep(3 + random.random())
            tool.send_signal(signal.SIGKILL)
            killed = time.monotonic_ns()
            tool.wait()
            os.killpg(tool.pid, signal.SIGKILL)
            run = pathlib.Path(folder) / "k"
            fast = [t for name, t in last_times(run) if name.startswith(("gpu0.", "gpu0-samples", "rapl"))]
            losses.append((killed - min(fast)) * 1e-9)
            opened += subprocess.run([options.bin / "ergometer", "show", run], stdout=subprocess.DEVNULL).returncode == 0
    row("lost after SIGKILL of the tool (s)", quantiles(losses, 1, 2), "1")
    row("directories that open afterwards", f"{opened} of {repeats}", "all")


def show_day(options, row):
    hours = "0.2" if options.quick else "24"
    folder = options.day or tempfile.mkdtemp()
    run = pathlib.Path(folder) / "day"
    try:
        if not run.exists():
            subprocess.run([options.bin / "make_day", run, hours, "8"], check=True)
        times = []
        for _ in range(1 if options.quick else 5):
            begin = time.monotonic()
            subprocess.run([options.bin / "ergometer", "show", run], stdout=subprocess.DEVNULL, check=True)
            times.append(time.monotonic() - begin)
        row(f"show on {hours} h of 8 GPUs (s)", quantiles(times, 1, 2), "5")
    finally:
        if not options.day:
            shutil.rmtree(folder)


def study_text(command, factors, rest=""):
    return f'name = "b"\ncommand = {json.dumps(command)}\n[factors]\n{factors}\n{rest}\n'


def study_gap(options, row):
    """From the end of one cell's command to the begin of the next one's: in a study, and in a loop of a shell around the same
    measurement. Their difference is what the executor adds."""
    cells = 3 if options.quick else 30
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        folder = pathlib.Path(folder)
        (folder / "b.toml").write_text(study_text("true {a}", f"a = {list(range(cells))}"))
        tool = str(options.bin / "ergometer")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "check": True}
        subprocess.run([tool, "study", "run", "b.toml"], **quiet)
        loop = "i=0; while [ $i -lt $2 ]; do \"$1\" run -o loop/$(printf %04d $i) --quiet -- true; i=$((i+1)); done"
        subprocess.run(["sh", "-c", loop, "sh", tool, str(cells)], **quiet)
        medians = []
        for name, what in (("runs/b/runs", "study"), ("loop", "shell loop")):
            runs = [json.loads(f.read_text()) for f in (folder / name).glob("*/run.json")]
            runs.sort(key=lambda run: run["begin_ns"])
            gaps = [(b["begin_ns"] - a["end_ns"]) * 1e-9 for a, b in zip(runs, runs[1:])]
            medians.append(statistics.median(gaps))
            row(f"from one command to the next, {what} (ms)", quantiles(gaps, 1e3), "")
        row("... added by the executor (ms)", f"{(medians[0] - medians[1]) * 1e3:.1f}", "50")


def study_plan(options, row):
    side = 10 if options.quick else 317
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "b.toml").write_text(study_text("true {a} {b}", f"a = {list(range(side))}\nb = {list(range(side))}"))
        times = []
        for _ in range(1 if options.quick else 5):
            begin = time.monotonic()
            subprocess.run([options.bin / "ergometer", "study", "plan", "b.toml"], stdout=subprocess.DEVNULL, cwd=folder,
                           check=True)
            times.append(time.monotonic() - begin)
        row(f"study plan of {side * side} cells (s)", quantiles(times, 1, 2), "2")


def read_lines(client):
    """The lines that have come; None at the end of the connection."""
    text = client.recv(1 << 20)
    return text.count(b"\n") if text else None


def ask_steadily(clients, seconds, rate):
    """Each client asks for new readings at this rate, each at moments of its own; how many answers came."""
    waiting = selectors.DefaultSelector()
    question = b'{"do":"read","sensor":"rapl","after":null}\n'
    begin = time.monotonic()
    due = [(begin + i / rate / len(clients), i, client) for i, client in enumerate(clients)]  # a heap: it ascends
    for client in clients:
        waiting.register(client, selectors.EVENT_READ)
    answers = 0
    while (now := time.monotonic()) < begin + seconds:
        while due[0][0] <= now:
            at, i, client = heapq.heappop(due)
            client.sendall(question)
            heapq.heappush(due, (at + 1 / rate, i, client))
        for key, _ in waiting.select(max(0, due[0][0] - now)):
            answers += read_lines(key.fileobj) or 0
    return answers


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        words = stat.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def daemon_clients(options, row):
    """64 clients of ergometerd, ten questions a second each."""
    seconds, count, rate = (1 if options.quick else 30), 64, 10
    if not (options.bin / "ergometerd").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        root, scenario = fake_machine(folder, 1)
        config = pathlib.Path(folder) / "daemon.toml"
        config.write_text('sensors = ["rapl"]\nread-users = ["%d"]\n' % os.getuid())
        daemon = subprocess.Popen([options.bin / "ergometerd", "--config", config, "--host-root", root],
                                  stderr=subprocess.DEVNULL)
        try:
            path = root / "run/ergometer/ergometerd.sock"
            while not path.exists() and daemon.poll() is None:
                time.sleep(0.01)
            clients = []
            for _ in range(count):
                clients.append(socket.socket(socket.AF_UNIX))
                clients[-1].connect(str(path))
                read_lines(clients[-1])
            ask_steadily(clients, min(2, seconds), rate)
            before, begin = cpu_seconds(daemon.pid), time.monotonic()
            answers = ask_steadily(clients, seconds, rate)
            cpu, length = cpu_seconds(daemon.pid) - before, time.monotonic() - begin
        finally:
            daemon.terminate()
            daemon.wait()
    row(f"CPU of ergometerd, {count} clients at {rate} Hz (% of one core)", f"{cpu / length * 100:.2f}", "2")
    row("... answers of those asked for (%)", f"{answers / (length * count * rate) * 100:.1f}", "100")


def merge_nodes(options, row):
    """Runs of many nodes that share no storage, joined, with the summary of all: time and memory of both together."""
    nodes, seconds = (20, 120) if options.quick else (options.nodes, 3600)
    folder = options.day or tempfile.mkdtemp()
    source, out = pathlib.Path(folder) / f"nodes-{nodes}", pathlib.Path(folder) / "merged"
    try:
        if not source.exists():
            subprocess.run([options.bin / "make_nodes", source, str(nodes), str(seconds), "8"], check=True)
        shutil.rmtree(out, ignore_errors=True)
        runs = sorted(source.iterdir())
        begin = time.monotonic()
        pid = os.posix_spawn(options.bin / "ergometer", ["ergometer", "merge", "-o", str(out), *map(str, runs)], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        elapsed = time.monotonic() - begin
        if status:
            raise SystemExit(f"merge failed with status {status}")
        summary = json.loads((out / "summary.json").read_text())
        total = sum(node["energy_j"] for node in summary["nodes"])
        what = f"merge and summary of {len(summary['nodes'])} nodes x 8 GPUs x {seconds} s at 1 Hz"
        row(f"{what} (s)", f"{elapsed:.1f}", "60")
        row("  processor time of it (s)", f"{usage.ru_utime + usage.ru_stime:.1f}", "")
        row("  memory of it (MB)", f"{usage.ru_maxrss / 1000:.0f}", "2000")
        row("  its summary.json (MB)", f"{(out / 'summary.json').stat().st_size / 1e6:.1f}", "")
        row("  its total less the sum of its nodes (J)", f"{summary['run']['energy_j'] - total:g}", "0")
    finally:
        shutil.rmtree(out, ignore_errors=True)
        if not options.day:
            shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("nvml", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--day", help="keep the generated runs in this folder")
    parser.add_argument("--only", help="comma-separated: start,overhead,kill,show,gap,plan,daemon,merge")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the merge; 10000 need 4 GB of disk and minutes to make")
    options = parser.parse_args()
    options.bin, options.nvml = options.bin.resolve(), options.nvml.resolve()
    parts = {"start": start_delay, "overhead": overhead, "kill": lost_after_kill, "show": show_day,
             "gap": study_gap, "plan": study_plan, "daemon": daemon_clients, "merge": merge_nodes}
    print(f"{'what (median, smallest to largest)':72} {'measured':>26} {'reach':>6}")
    for name, part in parts.items():
        if not options.only or name in options.only.split(","):
            part(options, lambda what, measured, reach: print(f"{what:72} {measured:>26} {reach:>6}", flush=True))


if __name__ == "__main__":
    main()
