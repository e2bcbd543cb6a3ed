"""Node meters on the command line: files and commands as meters, accounts that stay private, check-meter."""

import glob

from harness import *

SECRET = "hunter2-s3cret"


class Meters(CliTest):
    def refused(self, *arguments, says=(), code=2):
        done = self.tool(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_a_meters_file_is_followed_while_the_command_runs(self):
        self.write("meter.csv", "time_s,power_w\n")
        writer = "i=0; while [ $i -lt 15 ]; do echo \"$(date +%s.%N),250\" >> meter.csv; sleep 0.1; i=$((i+1)); done"
        done = self.tool("run", "--sensors", "meter=meter.csv", "-o", "r", "--json", "--", "sh", "-c", writer)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(self.read("r/summary.json"))
        node = [d for d in summary["nodes"][0]["domains"] if d["domain"] == "node"][0]
        self.assertAlmostEqual(node["mean_power_w"], 250, places=6)
        self.assertGreater(node["energy_j"], 100)
        self.assertTrue(node["in_total"], "nothing inside the node is measured")

    def test_a_command_that_prints_watts(self):
        done = self.tool("run", "--sensors", "meter-command=echo 300", "-o", "r", "--", "sleep", "2.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(self.read("r/summary.json"))
        self.assertAlmostEqual(summary["nodes"][0]["domains"][0]["mean_power_w"], 300, places=6)

    def test_a_failing_meter_leaves_the_exit_code_alone(self):
        self.write("fake.toml", SCENARIO)
        done = self.tool("run", "--sensors", "fake=fake.toml,meter-command=exit 9", "--", "sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        done = self.tool("run", "--sensors", "fake=fake.toml,meter=none.csv", "-o", "r", "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("meter-missing", [w["code"] for w in self.manifest("r")["warnings"]])
        self.refused("run", "--sensors", "meter=none.csv", "--require", "meter", "--", "true", says=[b"none.csv"], code=3)

    def test_settings_name_the_meters(self):
        self.write("ergometer.toml", '[meter]\ncommand = "echo 120"\n')
        found = json.loads(self.tool("sensors", "--json").stdout)
        self.assertIn("meter-command", [s["name"] for s in found["sensors"]])
        found = json.loads(self.tool("sensors", "--json", "--sensors", "procfs").stdout)
        self.assertNotIn("meter-command", [s["name"] for s in found["sensors"]])

    def test_unknown_settings_suggest_the_nearest(self):
        self.write("ergometer.toml", '[redfish]\nusr = "me"\n')
        self.refused("sensors", says=[b'"usr" of [redfish]', b"redfish.user"])
        self.write("ergometer.toml", "redfish = 3\n")
        self.refused("sensors", says=[b"is a table"])
        self.write("ergometer.toml", "")
        self.env["ERGOMETER_REDFISH_USR"] = "me"
        self.refused("sensors", says=[b"ERGOMETER_REDFISH_USER"])

    def test_a_password_that_others_can_read_is_refused(self):
        self.write("ergometer.toml", f'[ipmi]\npassword = "{SECRET}"\n', mode=0o644)
        self.refused("sensors", says=[b"chmod 600"])
        self.write("ergometer.toml", f'[ipmi]\npassword = "{SECRET}"\n', mode=0o600)
        self.assertEqual(self.tool("sensors", "--sensors", "procfs").returncode, 0)

    def test_accounts_reach_neither_the_command_nor_the_record(self):
        self.write("fake.toml", SCENARIO)
        self.env["ERGOMETER_REDFISH_USER"] = SECRET + "-user"
        self.env["ERGOMETER_REDFISH_PASSWORD"] = SECRET
        self.write("ergometer.toml", f'[ipmi]\nuser = "{SECRET}-ipmi"\npassword = "{SECRET}"\n', mode=0o600)
        done = self.tool("run", "--sensors", "fake=fake.toml,redfish=127.0.0.1:1,ipmi=127.0.0.1:1", "-o", "r", "--", "env")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(SECRET.encode(), done.stdout + done.stderr)
        self.assertNotIn(b"ERGOMETER_REDFISH", done.stdout)
        files = [f for f in glob.glob(self.path("r/**"), recursive=True) if os.path.isfile(f)]
        self.assertTrue(files)
        for file in files:
            with open(file, "rb") as content:
                self.assertNotIn(SECRET.encode(), content.read(), file)

    def test_the_program_loads_no_library_of_a_meter(self):
        needed = subprocess.run(["readelf", "-d", TOOL], capture_output=True, text=True).stdout
        self.assertIn("NEEDED", needed)
        for library in "freeipmi", "curl", "ssl", "crypto", "httplib":
            self.assertNotIn(library, needed)

    @unittest.skipUnless(os.environ.get("FAKE_FREEIPMI"), "no fake libfreeipmi")
    def test_ipmi_in_band_is_found_by_itself(self):
        self.write("root/dev/ipmi0", "")
        self.env["LD_LIBRARY_PATH"] = os.path.dirname(os.environ["FAKE_FREEIPMI"])
        found = json.loads(self.tool("--host-root", self.path("root"), "sensors", "--json").stdout)
        ipmi = [s for s in found["sensors"] if s["interface"] == "ipmi-dcmi"]
        self.assertEqual([c["value"] for c in ipmi[0]["channels"]], [360])


class CheckMeter(CliTest):
    def by_hand(self, run, seconds, **watts):
        """A run of sensors that read the power given by functions of the second."""
        self.write(f"{run}/run.json", json.dumps({
            "schema": "ergometer.run/1", "nodes": ["n"], "begin_ns": 0, "end_ns": seconds * 10**9,
            "clocks": [{"mono_ns": 0, "wall_ns": 1769860800 * 10**9}]}))
        for sensor, power in watts.items():
            rows = "".join(f"{t * 10**9},{power(t)}\n" for t in range(seconds + 1))
            self.write(f"{run}/nodes/n/samples/{sensor}.csv", "t_ns,power_w\n" + rows)

    def check(self, *arguments, code, says=()):
        done = self.tool("check-meter", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in says:
            self.assertIn(text, done.stdout + done.stderr)
        return done.stdout

    def test_pass_fail_and_no_verdict(self):
        self.by_hand("r", 320, bmc=lambda t: 206 + t % 2, wall=lambda t: 200, gpu0=lambda t: 100)
        self.check("r", "--sources", "bmc,wall", code=0, says=[b"PASS", b"3.25%"])
        self.check("r", "--sources", "gpu0/power_w,wall", code=1, says=[b"FAIL", b"different parts"])
        self.check("r", code=0, says=[b"bmc/power_w", b"wall/power_w"])
        self.by_hand("short", 200, bmc=lambda t: 200, wall=lambda t: 200)
        self.check("short", code=2, says=[b"NO VERDICT", b"3 of 5 disjoint minutes", b"200 s in common"])

    def test_bad_names(self):
        self.by_hand("r", 70, bmc=lambda t: 200, gpu0=lambda t: 100)
        self.check("r", "--sources", "bcm,gpu0", code=2, says=[b'"bcm"', b"bmc/power_w"])
        self.check("r", "--sources", "bmc", code=2, says=[b"two names"])
        self.check("r", code=2, says=[b"1 node meters", b"--import"])
        self.check("no-run", code=2)

    def test_a_meters_file_is_imported_after_the_run(self):
        self.by_hand("r", 320, bmc=lambda t: 204)
        rows = "".join(f"{(1769860800 + t) * 1000};{200_000 + t % 3}\n" for t in range(-100, 500))
        self.write("meter.csv", "timestamp_ms;power_mw\n" + rows)
        out = self.check("r", "--import", "meter.csv", code=0, says=[b"imported 321 rows", b"PASS"])
        self.assertIn(b"reference  node-meter/power_w", out)
        summary = json.loads(self.read("r/summary.json"))
        self.assertIn("node", [d["domain"] for d in summary["nodes"][0]["domains"]])
        self.check("r", "--import", "meter.csv", code=2, says=[b"exists"])

    def test_a_meter_with_another_clock_needs_its_offset(self):
        self.by_hand("r", 320, bmc=lambda t: 204)
        rows = "".join(f"{1769860800 + 3600 + t},200\n" for t in range(330))
        self.write("meter.csv", "time_s,power_w\n" + rows)
        self.check("r", "--import", "meter.csv", code=2, says=[b"no row", b"3600 s", b"--offset"])
        self.check("r", "--import", "meter.csv", "--offset", "-3600", code=0, says=[b"PASS"])

    def test_a_meter_with_an_unknown_unit_or_no_times(self):
        self.by_hand("r", 320, bmc=lambda t: 204)
        self.write("meter.csv", "time_s,power\n1769860801,200\n")
        self.check("r", "--import", "meter.csv", code=2, says=[b"unit"])
        self.write("meter.csv", "power_w\n200\n")
        self.check("r", "--import", "meter.csv", code=2, says=[b"no times"])


if __name__ == "__main__":
    unittest.main()
