"""Studies that set limits and clocks, on a fake machine whose settings outlive every process: what is set in each cell, that
it is put back on every way out, and the verdicts about it."""

from control_world import *
from study_world import *


class Controls(StudyTest):
    def setUp(self):
        super().setUp()
        self.machine = Machine(self.dir)
        # The command's energy comes from the fake sensor; the driver is there for what is set and seen.
        self.env |= self.machine.env
        self.env["ERGOMETER_SENSORS"] = f"nvml,fake={self.fake}"

    def play(self, text=""):
        self.machine.play(text)

    def test_each_cell_has_its_settings_and_all_is_put_back(self):
        self.write("t.toml", study_text("power_limit = [200, \"75%\", \"default\"]\ngraphics_clock = [1200]\ngovernor = [\"performance\"]",
                                        command="sh -c 'cat {state}; cat {root}/sys/devices/system/cpu/cpufreq/policy0/scaling_governor'",
                                        rest='[parameters]\nstate = "%s/state"\nroot = "%s"\n[runs]\norder = "as-listed"' % (self.dir, self.machine.root)))
        done = self.run_study("t.toml")
        self.assertIn("3 of 3 runs", done.stderr)
        limits = []
        for run in range(3):
            words = self.read(f"runs/t/runs/{run:04}.log").splitlines()
            limits.append([line.split()[2] for line in words if line.startswith(("0 ", "gpu"))][:1] or [words[0].split()[2]])
            self.assertIn("performance", words)
        self.assertEqual([int(limit[0]) for limit in limits], [200000, 300000, 300000])
        self.assertEqual(self.machine.differences(), [])
        self.assertFalse(os.path.exists(self.machine.journal))
        self.assertEqual([factor["values"] for factor in self.table_json()["factors"] if factor["name"] == "power_limit"],
                         [[200, 300, None]])

    def test_out_of_range_is_refused_before_anything_starts(self):
        self.write("t.toml", study_text("power_limit = [200, 900]", command="true"))
        done = self.run_study("t.toml", code=2)
        self.assertIn("power_limit 900", done.stderr)
        self.assertIn("100 to 400 W", done.stderr)
        self.assertEqual(self.machine.writes(), [])

    def test_more_gpus_than_there_are(self):
        self.write("t.toml", study_text("gpus = [1, 8]", command="true"))
        done = self.run_study("t.toml", code=2)
        self.assertIn("gpus 8: this machine has 2", done.stderr)

    def test_no_permission_is_told_before_anything_starts(self):
        self.play("gpu.fault = nvmlDeviceSetPowerManagementLimit 4\n")
        self.write("t.toml", study_text("power_limit = [200]", command="true"))
        done = self.study("run", "t.toml")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("root", done.stderr)
        self.assertEqual(self.machine.differences(), [])
        self.assertEqual(self.started() if os.path.exists(self.path("runs/t/journal.jsonl")) else [], [])

    def test_gpus_are_chosen_and_only_they_are_set(self):
        self.write("t.toml", study_text('gpus = [1, "1,"]\npower_limit = [200]', command="sh -c 'echo visible=$CUDA_VISIBLE_DEVICES n={gpus}; cat %s/state'" % self.dir,
                                        rest='[runs]\norder = "as-listed"'))
        self.run_study("t.toml")
        first, second = (self.read(f"runs/t/runs/{run:04}.log") for run in (0, 1))
        self.assertEqual([line.split()[2] for line in first.splitlines() if "limit" in line or line[:1].isdigit()][:2] or None,
                         ["200000", "300000"])
        visible = [next(line for line in text.splitlines() if line.startswith("visible=")) for text in (first, second)]
        self.assertNotEqual(visible[0], visible[1])
        self.assertTrue(all(line.endswith("n=1") for line in visible))
        self.assertEqual(self.machine.differences(), [])

    def test_a_limit_that_another_one_holds_makes_runs_invalid(self):
        self.play("gpu0.limit_cap = 250\n")
        self.write("t.toml", study_text("power_limit = [200, 300]", command="sleep 0.2"))
        done = self.run_study("t.toml")
        self.assertIn("1 valid, 1 invalid", done.stderr)
        self.assertIn("gpu/0/power: 300 W asked, 250 W enforced", done.stderr)

    def test_F76_levels_that_come_to_the_same_are_told(self):
        self.play("gpu0.limit_cap = 250\n")
        self.write("t.toml", study_text("power_limit = [200, 275, 300]", command="sleep 0.2"))
        self.run_study("t.toml")
        shown = self.study("show", "t.toml").stdout
        self.assertIn("gpu/0/power: 275 W and 300 W were asked for, and the device went by 250 W in each", shown)
        self.assertEqual(shown.count("were asked for"), 1)

    def test_a_failing_command_and_a_signal_leave_nothing_set(self):
        self.write("t.toml", study_text("power_limit = [200, 250]", command="false"))
        self.study("run", "t.toml")
        self.assertEqual(self.machine.differences(), [])
        self.write("s.toml", study_text("power_limit = [200, 250]", command="sleep 60", name="s"))
        tool = self.start("study", "run", "s.toml")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("runs/s/journal.jsonl")) and self.started("runs/s"), 60))
        self.assertNotEqual(self.machine.differences(), [])
        tool.send_signal(signal.SIGTERM)
        self.assertEqual(tool.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertEqual(self.machine.differences(), [])

    def test_a_plan_sets_nothing(self):
        self.write("t.toml", study_text("power_limit = [200, 250]", command="true"))
        done = self.study("plan", "t.toml")
        self.assertIn("gpu/0/power to gpu/1/power (2): 200 W, 250 W", done.stdout)
        self.assertEqual(self.machine.writes(), [])


if __name__ == "__main__":
    unittest.main()
