"""Conditions of a run, end to end on a fake machine: cooling down between runs, the temperature at the start, and processes of
others on the device."""

from control_world import *
from study_world import *

FACTORS = 'a = [1, 2]'


class Conditions(StudyTest):
    def setUp(self):
        super().setUp()
        self.machine = Machine(self.dir)
        self.env |= self.machine.env
        self.env["ERGOMETER_SENSORS"] = f"nvml,fake={self.fake}"

    def write_study(self, rest):
        self.write("t.toml", study_text(FACTORS, command="sleep 0.3{a}", rest=rest))

    def test_the_next_run_waits_for_a_hot_gpu(self):
        self.machine.play("gpu1.temperature = 90\n")
        self.write_study('[runs]\ncool_down = { time = "0s", below = 60, at_most = "10min" }')
        tool = self.start("study", "run", "t.toml")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("runs/t/journal.jsonl")) and self.ended(), 60))
        # It would begin at once; however long this machine takes, it must not while the GPU is hot.
        self.assertFalse(wait_until(lambda: len(self.started()) > 1, 3))
        tool.send_signal(signal.SIGTERM)
        self.assertEqual(tool.wait(timeout=60), 128 + signal.SIGTERM)
        self.assertEqual(len(self.started()), 1)

    def test_it_goes_on_when_the_gpu_is_cool(self):
        self.machine.play("gpu1.temperature = ramp 90 30 2\n")
        self.write_study('[runs]\ncool_down = { time = "0s", below = 60, at_most = "10min" }')
        self.run_study("t.toml")
        self.assertEqual([line["verdict"] for line in self.ended()], ["valid", "valid"])

    def test_it_goes_on_when_it_has_waited_long_enough(self):
        self.machine.play("gpu1.temperature = 90\n")
        self.write_study('[runs]\ncool_down = { time = "0s", below = 60, at_most = "500ms" }')
        self.run_study("t.toml")
        self.assertEqual(len(self.ended()), 2)

    def test_a_start_outside_the_temperatures_is_invalid(self):
        self.machine.play("gpu0.temperature = 72\n")
        self.write_study("[validity]\nstart_temperature = [30, 50]")
        self.run_study("t.toml")
        for line in self.ended():
            self.assertEqual(line["verdict"], "invalid")
            self.assertIn("72", line["reasons"][0])
            self.assertIn("30 to 50", line["reasons"][0])

    def use_the_real_processes(self):
        """Whose a process is can only be told where the machine's processes are seen."""
        shutil.rmtree(os.path.join(self.machine.root, "proc"))
        os.symlink("/proc", os.path.join(self.machine.root, "proc"))

    def test_a_process_of_somebody_else_makes_a_run_invalid(self):
        self.use_the_real_processes()
        self.machine.play("gpu0.processes = 1:1000000000\n")
        self.write_study("")
        self.run_study("t.toml")
        for line in self.ended():
            self.assertEqual(line["verdict"], "invalid")
            self.assertIn("gpu/0: up to 1 process of others used it", line["reasons"][0])

    def test_it_may_be_allowed(self):
        self.use_the_real_processes()
        self.machine.play("gpu0.processes = 1:1000000000\n")
        self.write_study("[validity]\nforeign_processes = true")
        self.run_study("t.toml")
        self.assertEqual([line["verdict"] for line in self.ended()], ["valid", "valid"])


if __name__ == "__main__":
    unittest.main()
