"""ergometer run: where a run is written, and what happens when that is not possible."""

import stat

from harness import *


class Folders(CliTest):
    def test_default_name(self):
        self.assertEqual(self.tool("run", "--", "true").returncode, 0)
        self.assertEqual(self.tool("run", "--name", "a/b c", "--", "true").returncode, 0)
        names = sorted(os.listdir(self.path("runs")))
        self.assertRegex(names[0], r"^a_b_c-\d{8}-\d{6}$")
        self.assertRegex(names[1], r"^true-\d{8}-\d{6}$")

    def test_existing_run_is_refused(self):
        self.tool("run", "-o", "r", "--", "true")
        before = self.read("r/run.json")
        done = self.tool("run", "-o", "r", "--", "touch", "ran")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"/r", done.stderr)
        self.assertFalse(os.path.exists(self.path("ran")), "the command must not start")
        self.assertEqual(self.read("r/run.json"), before)

    def test_F101_empty_files_count_as_absent(self):
        self.write("r/run.json", "")
        self.write("r/summary.json", "")
        done = self.tool("run", "-o", "r", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.manifest("r")["state"], "complete")
        self.assertEqual(json.loads(self.read("r/summary.json"))["schema"], "ergometer.summary/1")

    def test_output_is_a_file(self):
        self.write("r", "mine")
        done = self.tool("run", "-o", "r", "--", "touch", "ran")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.read("r"), "mine")
        self.assertFalse(os.path.exists(self.path("ran")))

    @unittest.skipIf(not os.path.isdir("/proc/sys"), "no /proc/sys")
    def test_folder_that_cannot_be_written(self):
        # Not even root can create files there.
        done = self.tool("run", "-o", "/proc/sys/ergometer", "--", "touch", "ran")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"/proc/sys/ergometer", done.stderr)
        self.assertFalse(os.path.exists(self.path("ran")))

    @unittest.skipIf(os.geteuid() == 0, "root writes to read-only folders")
    def test_read_only_folder(self):
        os.chmod(self.dir, stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(os.chmod, self.dir, 0o755)
        self.assertEqual(self.tool("run", "--", "true").returncode, 3)

    def test_nothing_is_left_when_measuring_cannot_start(self):
        done = self.tool("run", "--require", "gpu/17", "--", "touch", "ran")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b'"gpu/17"', done.stderr)
        self.assertEqual(os.listdir(self.path("runs")), [])
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_output_that_vanishes_changes_nothing_about_the_command(self):
        self.write("fake.toml", SCENARIO)
        done = self.tool("run", "-o", "r", "--sensors", "fake=fake.toml", "--", "sh", "-c",
                         "rm -r r; sleep 1; echo out; exit 6")
        self.assertEqual((done.returncode, done.stdout), (6, b"out\n"))
        self.assertIn(b"ergometer:", done.stderr)

    def test_full_disk(self):
        mount = self.path("small")
        os.mkdir(mount)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], capture_output=True)
        if made.returncode != 0:
            self.skipTest("mounting a small file system is not permitted")
        self.addCleanup(subprocess.run, ["umount", mount], capture_output=True)
        self.write("fake.toml", SCENARIO)
        fill = "dd if=/dev/zero of=small/fill bs=1k count=1000 2>/dev/null; sleep 1; exit 6"
        done = self.tool("run", "-o", "small/r", "--sensors", "fake=fake.toml", "--", "sh", "-c", fill)
        self.assertEqual(done.returncode, 6)
        self.assertIn(b"o space left", done.stderr)


class Phases(CliTest):
    def test_idle_before_and_after(self):
        self.write("fake.toml", SCENARIO)
        done = self.tool("run", "-o", "r", "--sensors", "fake=fake.toml", "--idle-before", "400ms", "--idle-after",
                         "300ms", "--", "sleep", "0.2")
        self.assertEqual(done.returncode, 0, done.stderr)
        manifest = self.manifest("r")
        before, after = manifest["idle_before"], manifest["idle_after"]
        self.assertGreaterEqual(before["end_ns"] - before["begin_ns"], 400e6)
        self.assertGreaterEqual(after["end_ns"] - after["begin_ns"], 300e6)
        self.assertLessEqual(before["end_ns"], manifest["begin_ns"])
        self.assertGreaterEqual(after["begin_ns"], manifest["end_ns"])

    def test_interrupt_while_idle(self):
        tool = self.start("run", "-o", "r", "--idle-before", "60s", "--", "touch", "ran")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("r/run.json"))))
        time.sleep(0.3)
        tool.terminate()
        self.assertEqual(tool.wait(timeout=10), 143)
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertIsNone(self.manifest("r")["begin_ns"])


class Warnings(CliTest):
    def test_F15_forbidden_counter(self):
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("needs an ordinary user")
        root = "root/sys/class/powercap/intel-rapl:0"
        self.write(f"{root}/name", "package-0\n")
        self.write(f"{root}/max_energy_range_uj", "262143328850\n")
        self.write(f"{root}/energy_uj", "1000000\n", 0o000)
        self.write("fake.toml", SCENARIO.replace("package/0", "gpu/0").replace('"package"', '"gpu"'))
        # To root nothing is forbidden; without these capabilities file modes hold for it as well.
        drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        done = subprocess.run([*drop, TOOL, "--host-root", self.path("root"), "run", "-o", "r", "--sensors",
                               "rapl,fake=fake.toml", "--", "sh", "-c", "sleep 0.5; exit 5"],
                              cwd=self.dir, env=self.env, capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 5, done.stderr)
        summary = json.loads(self.read("r/summary.json"))
        about = [w for w in summary["warnings"] if "energy_uj" in w["message"] or "ermission" in w["message"]]
        self.assertEqual(len(about), 1, summary["warnings"])
        self.assertTrue(about[0]["remedy"])
        domains = [d for d in summary["nodes"][0]["domains"] if d["measured"] and d["energy_j"] is not None]
        self.assertEqual({d["scope"] for d in domains}, {"gpu"})

    def test_F104_a_gpu_without_temperature_spoils_no_reader(self):
        self.write("gpus", "gpus = 2\ngpu1.unsupported = nvmlDeviceGetTemperature\n")
        self.env["ERGOMETER_FAKE_NVML"] = self.path("gpus")
        tool = self.start("--nvml", os.environ["FAKE_NVML"], "run", "-o", "r", "--interval", "20ms", "--", "sleep", "3")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("r/run.json"))))
        reads = 0
        while tool.poll() is None and reads < 100:
            shown = self.tool("show", "r", "--json", text=True)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            json.loads(shown.stdout, parse_constant=self.fail)
            reads += 1
        self.assertGreater(reads, 3)
        self.assertEqual(tool.wait(timeout=30), 0)
        node = json.loads(self.read(self.node_files("r", "node.json")[0]))
        columns = {s["name"]: [c["column"] for c in s["channels"]] for s in node["sensors"]}
        self.assertIn("temperature_celsius", columns["gpu0"])
        self.assertNotIn("temperature_celsius", columns["gpu1"])
        self.assertIn("gpu_active_ratio", columns["gpu1"])

    def test_F52_stuck_driver_does_not_hold_up_the_end(self):
        stuck = SCENARIO.replace('name = "package"', 'name = "other"').replace("package/0", "package/1") + '[[sensor.fault]]\nkind = "block"\nfrom = "200ms"\nto = "60s"\n'
        self.write("fake.toml", SCENARIO + stuck)
        began = time.monotonic()
        done = self.tool("run", "-o", "r", "--sensors", "fake=fake.toml", "--", "sh", "-c", "sleep 1; exit 5",
                         timeout=30)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertLess(time.monotonic() - began, 20)
        gaps = [e for e in self.table("r", "events.csv") if e["source"] == "other" and e["kind"] == "gap"]
        self.assertEqual(len(gaps), 1)
        package = json.loads(self.read("r/summary.json"))["nodes"][0]["domains"]
        self.assertIn("package/0", [d["domain"] for d in package])


if __name__ == "__main__":
    unittest.main()
