"""ergometer control: set for a command, set to stay, restored whatever happens, refused with a reason."""

from control_world import *


class ControlTest(InMemoryTest):
    def setUp(self):
        super().setUp()
        self.machine = Machine(self.dir)
        self.env.update(self.machine.env)
        self.env["ERGOMETER_HOST_ROOT"] = self.machine.root

    def control(self, *arguments, **options):
        done = self.tool("control", *arguments, text=True, **options)
        return done

    def assertUnchanged(self):
        self.assertEqual(self.machine.differences(), [])
        self.assertFalse(os.path.exists(self.machine.journal))
        self.assertTrue(wait_until(lambda: not self.machine.guardians()))

    def started(self, *requests, script="sleep 30"):
        """A tool whose command runs."""
        tool = self.start("control", "set", *requests, "--", "sh", "-c", f"touch {self.path('runs')}; {script}",
                          start_new_session=True)
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("runs"))), "the command did not begin")
        return tool


class Set(ControlTest):
    def test_for_the_time_of_a_command(self):
        done = self.control("set", *TOUCHING, "--", "sh", "-c", f"cat state root/{ZONE}/* root/{POLICY}1/*")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("gpu0 limit_mw 250000 clock 1200 1200", "gpu1 limit_mw 250000 clock 0 0", "110000000",
                     "performance", "2000000"):
            self.assertIn(part, done.stdout)
        self.assertIn("gpu/0/power set to 250 W", done.stderr)
        self.assertIn("gpu/0/power restored to 300 W", done.stderr)
        self.assertUnchanged()

    def test_percentages_say_what_was_chosen(self):
        done = self.control("set", "gpu/0/power=80%", "gpu/0/clock=53%", "--", "true")
        self.assertIn("gpu/0/power set to 320 W (80%)", done.stderr)
        self.assertIn("gpu/0/clock set to 1050 MHz (53%)", done.stderr)
        self.assertUnchanged()

    def test_the_commands_own_code(self):
        self.assertEqual(self.control("set", "gpu/0/power=250W", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertUnchanged()
        before = self.machine.writes()
        done = self.control("set", "gpu/0/power=250W", "--", "no-such-command")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(self.machine.writes(), before)

    def test_the_command_inherits_nothing_of_ours(self):
        done = self.control("set", "gpu/0/power=250W", "--", "sh", "-c", "ls /proc/$$/fd; cut -f1 /proc/$$/status | head -1")
        self.assertEqual(done.stdout.split()[:3], ["0", "1", "2"])
        self.assertNotIn("4", done.stdout.split(), done.stdout)

    def test_F73_signals_restore(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            tool = self.started("gpu/0/power=250W", "gpu/0/clock=1200MHz", script="trap - INT; exec sleep 30")
            self.assertEqual(self.machine.gpus()[0]["clock"], (1200, 1200))
            tool.send_signal(number)
            tool.communicate(timeout=20)
            self.assertEqual(tool.returncode, code)
            self.assertUnchanged()
            os.remove(self.path("runs"))

    def test_F77_three_reasons_and_no_command(self):
        messages = set()
        for code in (3, 4, 2):
            self.machine.play(f"gpu.fault = nvmlDeviceSetPowerManagementLimit {code}\n")
            done = self.control("set", "gpu/0/power=250W", "--", "touch", "began")
            self.assertIn(done.returncode, (2, 3))
            self.assertFalse(os.path.exists(self.path("began")))
            messages.add(done.stderr)
            self.assertIn({3: "not supported", 4: "CAP_SYS_ADMIN", 2: "100 to 400 W"}[code], done.stderr)
            self.assertUnchanged()
        self.assertEqual(len(messages), 3)

    def test_F79_a_clock_that_does_not_obey_is_told(self):
        self.machine.play("gpu.sm_clock = 1410\ngpu.clock_obeys = no\n")
        done = self.control("set", "gpu/0/clock=1200MHz", "--", "sleep", "0.5")
        self.assertIn("gpu/0/clock not in effect: 1200 MHz asked, 1410 MHz seen", done.stderr)
        resets = [line for line in self.machine.writes() if "Reset" in line]
        self.assertEqual({line.split()[1] for line in resets}, {"nvmlDeviceResetGpuLockedClocks"})
        self.assertUnchanged()

    def test_F95_the_second_is_refused(self):
        tool = self.started("gpu/0/power=250W")
        done = self.control("set", "gpu/1/power=250W", "--", "touch", "began")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"controlled by PID {tool.pid} (control set -- sh -c", done.stderr)
        self.assertFalse(os.path.exists(self.path("began")))
        done = self.control("restore")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"PID {tool.pid}", done.stderr)
        self.assertEqual(self.machine.gpus()[0]["limit_mw"], 250000)
        tool.terminate()
        tool.communicate(timeout=20)
        self.assertUnchanged()

    def test_bad_input_touches_nothing(self):
        for words, part in ((["gpu/0/power=99W"], "100 to 400 W"), (["gpu/0/power=5000W"], "100 to 400 W"),
                            (["power=200W"], "gpu/0/power=200W"), (["gpu/0/clock=1201MHz"], "1200 MHz or 1215 MHz"),
                            (["gpu/0/powr=200W"], "did you mean"), (["gpu/0/power"], "NAME=VALUE"),
                            (["cpu/governor=turbo"], "performance, powersave"), (["gpu/0/power=200"], "200W")):
            done = self.control("set", *words, "--", "touch", "began")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)
        self.assertFalse(os.path.exists(self.path("began")))
        self.assertEqual(self.machine.writes(), [])
        self.assertUnchanged()

    def test_somebody_elses_value_stays(self):
        file = f"root/{ZONE}/constraint_0_power_limit_uw"
        done = self.control("set", "package/0/power=110W", "--", "sh", "-c", f"echo 99000000 > {file}")
        self.assertIn("somebody else changed it meanwhile; left alone", done.stderr)
        self.assertEqual(self.machine.read(f"{ZONE}/constraint_0_power_limit_uw"), "99000000\n")
        self.assertEqual(self.machine.read(f"{ZONE}/enabled"), "0\n")
        self.assertFalse(os.path.exists(self.machine.journal))

    def test_the_sites_own_command(self):
        self.write("site", f'#!/bin/sh\necho "$@" >> {self.dir}/site.log\n'
                           f'case $1 in */power) echo "${{3%W}}000000" > {self.machine.root}/{ZONE}/constraint_0_power_limit_uw;;\n'
                           f'*/enabled) [ $3 = on ] && n=1 || n=0; echo $n > {self.machine.root}/{ZONE}/enabled;; esac\n', 0o755)
        done = self.control("--control-command", f"{self.dir}/site", "set", "package/0/power=110W", "--", "cat",
                            f"root/{ZONE}/constraint_0_power_limit_uw")
        self.assertEqual((done.returncode, done.stdout), (0, "110000000\n"), done.stderr)
        calls = self.read("site.log").splitlines()
        self.assertIn("package/0/power intel-rapl:0 110W", calls)
        self.assertIn("package/0/power intel-rapl:0 175W", calls)
        self.assertUnchanged()
        self.write("site", "#!/bin/sh\nexit 1\n", 0o755)
        done = self.control("--control-command", f"{self.dir}/site", "set", "package/0/power=110W", "--", "touch", "began")
        self.assertEqual(done.returncode, 3)
        self.assertIn("ended with 1", done.stderr)
        self.assertUnchanged()

    def test_inside_it_nothing_is_left_over(self):
        done = self.control("set", "gpu/0/power=250W", "--", TOOL, "list")
        self.assertNotIn("still set", done.stderr)


class Kept(ControlTest):
    def test_stays_until_restored(self):
        done = self.control("set", "gpu/0/power=250W", "gpu/1/clock=1200MHz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ergometer control restore", done.stderr)
        self.assertTrue(wait_until(lambda: not self.machine.guardians()))
        self.assertEqual(self.machine.gpus()[0]["limit_mw"], 250000)
        self.assertEqual(self.machine.gpus()[1]["clock"], (1200, 1200))

        listed = self.tool("list", text=True)
        self.assertEqual(listed.returncode, 0)
        self.assertIn("still set on purpose", listed.stderr)
        self.assertIn("gpu/0/power 250 W (was 300 W)", listed.stderr)
        ran = self.tool("run", "--quiet", "--sensors", f"fake={self.write('scenario.toml', SCENARIO)}", "-o", "r", "--", "true",
                        text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("ergometer control restore", ran.stderr)

        again = self.control("set", "gpu/0/power=200W", "--", "touch", "began")
        self.assertEqual(again.returncode, 3)
        self.assertIn("first: ergometer control restore", again.stderr)
        self.assertFalse(os.path.exists(self.path("began")))

        done = self.control("restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertUnchanged()
        self.assertIn("nothing to restore", self.control("restore").stdout)
        self.assertNotIn("still set", self.tool("list", text=True).stderr)

    def test_after_a_restart_nothing_is_written(self):
        self.control("set", "gpu/0/power=250W")
        self.machine.write("proc/sys/kernel/random/boot_id", "boot-two\n")
        os.remove(self.path("state"))  # the driver has forgotten
        writes = self.machine.writes()
        self.assertIn("when the machine went down", self.tool("list", text=True).stderr)
        done = self.control("restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.machine.writes(), writes)
        self.assertFalse(os.path.exists(self.machine.journal))


class Died(ControlTest):
    def kill_and_wait(self, tool):
        tool.kill()
        tool.wait(timeout=20)
        self.assertTrue(wait_until(lambda: not self.machine.guardians(), 20))

    def test_the_guardian_restores(self):
        tool = self.started(*TOUCHING)
        self.assertNotEqual(self.machine.differences(), [])
        self.kill_and_wait(tool)
        self.assertUnchanged()

    def test_of_the_whole_process_group(self):
        tool = self.started(*TOUCHING)
        os.killpg(tool.pid, signal.SIGKILL)
        tool.wait(timeout=20)
        self.assertTrue(wait_until(lambda: not self.machine.guardians(), 20))
        self.assertUnchanged()

    def test_the_guardian_is_in_nobodys_tree(self):
        tool = self.started("gpu/0/power=250W")
        guardian, = self.machine.guardians()
        with open(f"/proc/{guardian}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        parent, group, session = (int(field) for field in fields[1:4])
        self.assertNotIn(tool.pid, (parent, group, session))
        with open(f"/proc/{guardian}/status") as status:
            blocked = next(line.split()[1] for line in status if line.startswith("SigBlk"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            self.assertTrue(int(blocked, 16) >> (number - 1) & 1, number)
        self.kill_and_wait(tool)
        self.assertUnchanged()

    def test_without_its_guardian_the_tool_restores(self):
        tool = self.started("gpu/0/power=250W", script="sleep 0.5")
        for pid in self.machine.guardians():
            os.kill(pid, signal.SIGKILL)
        tool.communicate(timeout=20)
        self.assertEqual(tool.returncode, 0)
        self.assertUnchanged()

    def test_without_both_the_next_start_says_so(self):
        tool = self.started(*TOUCHING)
        for pid in self.machine.guardians():
            os.kill(pid, signal.SIGKILL)
        self.kill_and_wait(tool)
        self.assertNotEqual(self.machine.differences(), [])
        for command in (["list"], ["doctor"], ["control", "show"]):
            told = self.tool(*command, text=True).stderr
            self.assertIn(f"still set by PID {tool.pid} (control set -- sh -c", told)
            self.assertIn("gpu/0/power 250 W (was 300 W)", told)
            self.assertIn("gpu/0/clock 1200 MHz (locked)", told)
            self.assertIn("ergometer control restore", told)
        self.assertEqual(self.control("set", "gpu/0/power=200W", "--", "true").returncode, 3)
        done = self.control("restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertUnchanged()

    def test_a_restore_that_fails_keeps_the_journal(self):
        # Two writes prove and set; GPU 1 then refuses for longer than anybody tries.
        self.machine.play("gpu1.write_fault = nvmlDeviceSetPowerManagementLimit 999 2\n")
        done = self.control("set", "gpu/power=250W", "--", "true")
        self.assertEqual(done.returncode, 3)
        self.assertIn("gpu/0/power restored to 300 W", done.stderr)
        self.assertIn("cannot set gpu/1/power", done.stderr)
        self.assertTrue(os.path.exists(self.machine.journal))
        self.assertIn("gpu/1/power", self.tool("list", text=True).stderr)
        self.machine.play("")
        done = self.control("restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertUnchanged()


class Show(ControlTest):
    def test_names_values_ranges_and_rights(self):
        done = self.control("show")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {line.split()[0]: line for line in done.stdout.splitlines() if "/" in line.split()[0]}
        for name, parts in {"gpu/0/power": ("300 W", "400 W", "100 to 400 W", "CAP_SYS_ADMIN"),
                            "gpu/1/clock": ("runs at 1980 MHz", "345 to 1980 MHz, 110 values"),
                            "gpu/0/persistence": ("off", "off, on"),
                            "package/0/power": ("175 W", "root"),
                            "cpu/1/governor": ("powersave", "performance, powersave"),
                            "cpu/0/max-frequency": ("3000 MHz", "800 to 3500 MHz")}.items():
            for part in parts:
                self.assertIn(part, rows[name])
        self.assertEqual(self.machine.writes(), [])

    def test_what_is_missing_has_a_reason(self):
        self.env["ERGOMETER_NVML"] = "/no/such/library"
        self.env["ERGOMETER_HOST_ROOT"] = self.path("empty")
        done = self.control("show")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing here can be set", done.stdout)
        self.assertIn("cannot load the NVML library", done.stdout)

    def test_subcommands_are_named(self):
        done = self.control("sett", "gpu/0/power=200W")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("guard", self.control("--help").stdout)


if __name__ == "__main__":
    unittest.main()
