"""ergometer calibrate: what it prints of a recorded calibration, and what it refuses."""
import pathlib
import random

from harness import *

PERIOD_S, WINDOW_S, POLL_S = 0.1, 0.5, 0.01


def channel(column, method, behaviour, quantity, unit):
    return {"column": column, "quantity": quantity, "unit": unit, "behaviour": behaviour, "domain": "gpu/0",
            "device": "GPU-1", "scope": "gpu", "method": method, "measured": True, "in_total": True}


def write_run(folder):
    """A GPU of 100 W, 400 W under a load of random times; an average of half a second and a counter, each 100 ms."""
    rng = random.Random(1)
    switches, t = [], 2.0
    while t < 30:
        switches.append(t)
        t += rng.uniform(0.06, 0.8)
    switches = switches[:len(switches) // 2 * 2]
    fine = [100.0] * 32000  # watts by millisecond
    for begin, end in zip(switches[::2], switches[1::2]):
        for i in range(int(begin * 1000), int(end * 1000)):
            fine[i] = 400.0
    sums = [0.0]
    for watts in fine:
        sums.append(sums[-1] + watts * 1e-3)
    rows = []
    for k in range(int(31 / POLL_S)):
        now = k * POLL_S
        update = int(now / PERIOD_S) * PERIOD_S
        i = int(update * 1000)
        j = max(0, i - int(WINDOW_S * 1000))
        average = (sums[i] - sums[j]) / (max(i - j, 1) * 1e-3) if i else 100.0
        rows.append(f"{int(now * 1e9)},2000,{average:.1f},{sums[i]:.3f}")
    run = pathlib.Path(folder)
    node = run / "nodes/n"
    (node / "samples").mkdir(parents=True)
    (node / "samples/gpu0.csv").write_text("t_ns,read_ns,power_average_w,energy_j\n" + "\n".join(rows) + "\n")
    (node / "node.json").write_text(json.dumps({"schema": "ergometer.node/1", "name": "n", "sensors": [
        {"name": "gpu0", "interface": "nvml", "interval_ns": int(POLL_S * 1e9), "own_time": False, "channels": [
            channel("power_average_w", "average", "gauge", "power", "W"),
            channel("energy_j", "counter", "counter", "energy", "J")]}]}))
    regions = ["t_begin_ns,t_end_ns,pid,tid,rank,path,attributes", f"{int(1e9)},{int(31e9)},1,1,,gpu0,"]
    for begin, end in zip(switches[::2], switches[1::2]):
        regions.append(f"{int(begin * 1e9)},{int(end * 1e9)},1,1,,gpu0/load,")
    (node / "regions.csv").write_text("\n".join(regions) + "\n")
    (run / "run.json").write_text(json.dumps({"schema": "ergometer.run/1", "state": "complete", "begin_ns": int(1e9),
                                              "end_ns": int(31e9), "nodes": ["n"]}))


class CalibrateTest(CliTest):
    def test_a_record_is_told(self):
        write_run(self.path("run"))
        done = self.tool("calibrate", "--from", "run", "--profiles", "profiles", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("profiles/nvml-GPU-1.toml")) as file:
            profile = file.read()
        for text in ("GPU-1", "power_average_w", "energy_j", "period_ms", "window_ms", "run run"):
            self.assertIn(text, profile)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("gpu/0 GPU-1"), done.stdout)
        average = next(line for line in lines if "power_average_w" in line).split()
        counter = next(line for line in lines if "energy_j" in line).split()
        self.assertEqual(average[3:5], ["100", "ms"], done.stdout)
        self.assertEqual(counter[3:5], ["100", "ms"], done.stdout)
        self.assertAlmostEqual(float(average[5]), 500, delta=15, msg=done.stdout)
        self.assertEqual(average[6], "ms")

    def test_what_it_refuses(self):
        self.write("root/proc/stat", "cpu  1 2 3 4\n")
        zone = "root/sys/class/powercap/intel-rapl:0/"
        for name, text in (("name", "package-0"), ("energy_uj", "1000"), ("max_energy_range_uj", "262143328850")):
            self.write(zone + name, text + "\n")
        for arguments, words in ((["--device", "gpu/7", "--host-root", "root"], 'there is no device "gpu/7" here'),
                                 (["--host-root", "nothing"], "no sensor of this machine tells a measured power"),
                                 (["--length", "3s"], "a length must be from 20s to 1h, not 3s"),
                                 (["--from", "none"], "none")):
            done = self.tool("calibrate", "--store", "store", *arguments, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        self.assertEqual(os.listdir(self.path("store")), [], "nothing is left behind")


if __name__ == "__main__":
    unittest.main()
