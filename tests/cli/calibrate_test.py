"""ergometer calibrate: what it prints of a recorded calibration, and what it refuses."""
import pathlib
import random

from harness import *

PERIOD_S, WINDOW_S, POLL_S = 0.1, 0.5, 0.01
WALL_NS = 1769860800 * 10**9


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
                                              "end_ns": int(31e9), "nodes": ["n"],
                                              "clocks": [{"mono_ns": 0, "wall_ns": WALL_NS}]}))
    return fine


def meter_rows(fine, behind=0.0, scale=1.0):
    """A meter beside it that reads 1.05 times what the GPU says, and 12 W more; its clock is behind."""
    return "".join(f"{WALL_NS / 1e9 + i * 1e-3 - behind:.3f},{scale * (1.05 * fine[i] + 12):.4f}\n"
                   for i in range(1000, 31000, 20))


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

    def against(self, *arguments, code=0):
        done = self.tool("calibrate", "--from", "run", "--profiles", "profiles", *arguments, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_meter_gives_gain_offset_and_clock(self):
        fine = write_run(self.path("run"))
        self.write("meter.csv", "time_s,power_w\n" + meter_rows(fine, behind=2))
        out = self.against("--meter", "meter.csv", "--meter-of", "gpu/0")
        self.assertIn("The meter's clock is 2.0", out)
        self.assertIn("s behind ours", out)
        line = next(l for l in out.splitlines() if "energy_j" in l and "\u00b1" in l and "W" in l and "." in l.split()[2])
        with open(self.path("profiles/nvml-GPU-1.toml")) as file:
            profile = file.read()
        gains = [float(l.split("value = ")[1].split(",")[0]) for l in profile.splitlines() if l.startswith("gain =")]
        offsets = [float(l.split("value = ")[1].split(",")[0]) for l in profile.splitlines() if l.startswith("offset_w")]
        self.assertEqual(len(gains), 2, profile)
        for gain, offset in zip(gains, offsets):
            self.assertAlmostEqual(gain, 1.05, delta=0.02, msg=line)
            self.assertAlmostEqual(offset, 12, delta=6)
        self.assertIn("against meter.csv", profile)
        # A later calibration without the meter keeps what the meter told.
        self.against()
        with open(self.path("profiles/nvml-GPU-1.toml")) as file:
            self.assertEqual(file.read().count("gain ="), 2)

    def test_bad_meter_files(self):
        fine = write_run(self.path("run"))
        self.write("hour.csv", "time_s,power_w\n" + meter_rows(fine, behind=3600))
        out = self.against("--meter", "hour.csv", "--meter-of", "gpu/0", code=2)
        self.assertIn("no power of hour.csv lies in the record", out)
        self.assertIn("--offset", out)
        self.against("--meter", "hour.csv", "--meter-of", "gpu/0", "--offset", "3600")
        rows = meter_rows(fine).splitlines(True)
        self.write("gap.csv", "time_s,power_w\n" + "".join(rows[:500] + rows[800:]))
        self.assertIn("a gap of 6.0 s", self.against("--meter", "gap.csv", "--meter-of", "gpu/0"))
        self.write("kilo.csv", "time_s,power_w\n" + meter_rows(fine, scale=0.001))
        out = self.against("--meter", "kilo.csv", "--meter-of", "gpu/0", code=2)
        self.assertIn("no sensor is so wrong", out)
        self.assertIn("unit", out)
        self.write("kilo.csv", "time_s,power_kw\n" + meter_rows(fine, scale=0.001))
        self.against("--meter", "kilo.csv", "--meter-of", "gpu/0")
        self.write("flat.csv", "time_s,power_w\n" + "".join(l.split(",")[0] + ",300\n" for l in rows))
        self.assertIn("does not go along", self.against("--meter", "flat.csv", "--meter-of", "gpu/0", code=2))
        self.write("unit.csv", "time_s,power\n" + meter_rows(fine))
        self.assertIn("unit", self.against("--meter", "unit.csv", "--meter-of", "gpu/0", code=2))
        self.write("meter.csv", "time_s,power_w\n" + meter_rows(fine))
        self.assertIn("there are: gpu/0", self.against("--meter", "meter.csv", code=2))
        self.assertIn("none.csv", self.against("--meter", "none.csv", code=2))

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
