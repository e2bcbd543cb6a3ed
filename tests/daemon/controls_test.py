"""Controls through the daemon: an ordinary user sets limits that only root may set, within what the site allows, and all
is put back on every way out."""

from control_world_of_users import *

SET = ("control", "set", "gpu/power=250W", "gpu/0/clock=1200MHz", "package/0/power=110W", "cpu/governor=performance")


class Controls(UsersTest):
    def holding(self, *settings, groups=(GROUP,), user=USER):
        """A user's command that runs under settings until it is ended."""
        tool = self.start_user_tool("control", "set", *(settings or ("gpu/power=250W",)), "--", "sleep", "600",
                                    groups=groups, user=user, start_new_session=True)
        self.addCleanup(self.kill_group, tool)
        self.assertTrue(wait_until(lambda: self.machine.differences() or tool.poll() is not None, 60))
        self.assertIsNone(tool.poll(), tool.poll() is not None and tool.stderr.read())
        return tool

    @staticmethod
    def kill_group(tool):
        try:
            os.killpg(tool.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_a_user_sets_what_only_the_daemon_may(self):
        self.start_daemon()
        script = (f"cat {self.dir}/state; cat {self.machine.root}/{ZONE}/constraint_0_power_limit_uw; "
                  f"cat {self.machine.root}/{POLICY}1/scaling_governor")
        done = self.user_tool(*SET, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr + self.log())
        self.assertIn("gpu0 limit_mw 250000 clock 1200 1200", done.stdout)
        self.assertIn("gpu1 limit_mw 250000 clock 0 0", done.stdout)
        self.assertIn("110000000", done.stdout)
        self.assertIn("performance", done.stdout)
        self.assertIn("gpu/1/power set to 250 W", done.stderr)
        self.assertIn("gpu/1/power restored to 300 W", done.stderr)
        self.wait_for_rest()
        self.assertIn("control set -- sh", self.log())

    def test_without_a_daemon_the_remedy_names_it(self):
        done = self.user_tool("control", "set", "gpu/power=250W", "--", "true")
        self.assertEqual(done.returncode, 3)
        self.assertIn("control-groups", done.stderr)
        self.assertIn("docs/daemon.md", done.stderr)
        self.assertEqual(self.machine.differences(), [])

    def test_who_is_not_named_is_refused_and_nothing_is_touched(self):
        self.start_daemon()
        done = self.user_tool("control", "set", "gpu/power=250W", "--", "true", groups=())
        self.assertEqual(done.returncode, 3)
        self.assertIn("permission denied: ergometerd", done.stderr)
        self.assertEqual(self.machine.differences(), [])
        self.assertFalse(os.path.exists(self.machine.journal))

    def test_a_reader_is_no_controller(self):
        self.start_daemon(f'read-users = ["{USER}"]\nsensors = ["rapl"]\ncontrol-users = ["0"]\n')
        done = self.user_tool("control", "set", "gpu/power=250W", "--", "true", groups=())
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"sets no controls for user {USER}", done.stderr)
        self.assertIn("control-users of ergometerd.toml", done.stderr)
        self.assertEqual(self.machine.differences(), [])

    def test_a_daemon_that_sets_nothing_says_so(self):
        self.start_daemon(f'read-users = ["{USER}"]\nsensors = ["rapl"]\n')
        done = self.user_tool("control", "set", "gpu/power=250W", "--", "true", groups=())
        self.assertEqual(done.returncode, 3)
        self.assertIn("sets no controls on this node", done.stderr)
        self.assertIn("control-groups", done.stderr)

    def test_a_controller_may_not_read_by_that(self):
        self.start_daemon(CONFIG.replace(f'control-groups = ["{GROUP}"]', f'control-users = ["{USER}"]'))
        answer = self.say('{"do":"list"}', user=USER)[1]
        self.assertEqual(answer["error"]["code"], "permission_denied")

    def test_the_sites_limits_hold(self):
        self.start_daemon(CONFIG + 'controls = ["gpu/*/power=200W..300W", "gpu/1/clock"]\n')
        for settings, words in ((["gpu/power=150W"], "gpu/*/power from 200 W to 300 W"),
                                (["gpu/0/power=250W", "cpu/governor=performance"], "does not allow cpu/0/governor = performance"),
                                (["gpu/clock=1200MHz"], "does not allow gpu/0/clock")):
            done = self.user_tool("control", "set", *settings, "--", "true")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(self.machine.differences(), [])
        done = self.user_tool("control", "set", "gpu/power=200W", "gpu/1/clock=1200MHz", "--", "cat", f"{self.dir}/state")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpu1 limit_mw 200000 clock 1200", done.stdout)
        self.wait_for_rest()

    def test_what_an_allowed_control_needs_is_allowed(self):
        self.start_daemon(CONFIG + 'controls = ["package/*/power"]\n')
        done = self.user_tool("control", "set", "package/0/power=110W", "--", "cat", f"{self.machine.root}/{ZONE}/enabled")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "1"), done.stderr)
        self.wait_for_rest()
        refused = self.user_tool("control", "set", "package/0/enabled=on", "--", "true")
        self.assertIn("does not allow package/0/enabled", refused.stderr)

    def test_out_of_the_devices_range_is_refused(self):
        self.start_daemon()
        done = self.user_tool("control", "set", "gpu/power=900W", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("100 to 400 W", done.stderr)

    def test_one_lease_and_others_are_told_who_holds_it(self):
        daemon = self.start_daemon()
        tool = self.holding()
        second = self.user_tool("control", "set", "gpu/1/power=200W", "--", "true")
        self.assertEqual(second.returncode, 3)
        self.assertIn("controlled by", second.stderr)
        self.assertIn("control set -- sleep 600", second.stderr)
        # Over the socket as well, whoever the client is.
        lease = json.dumps({"do": "lease", "holder": "mine", "controls": [
            {"name": "cpu/0/governor", "backend": "cpufreq", "device_id": "policy0", "values": ["performance"]}]})
        refused = self.say(lease)[1]["error"]
        self.assertEqual(refused["code"], "exists")
        self.assertIn("control set -- sleep 600, through ergometerd", refused["message"])
        # And by the node's lock, root too.
        root = subprocess.run([TOOL, "control", "set", "gpu/0/power=200W", "--", "true"], env=self.env | self.machine.env,
                              capture_output=True, text=True, timeout=60)
        self.assertIn(f"controlled by PID {daemon.pid} (ergometerd for", root.stderr)
        os.killpg(tool.pid, signal.SIGTERM)
        tool.wait(timeout=60)
        self.wait_for_rest()
        done = self.user_tool("control", "set", "gpu/1/power=200W", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_killed_client_leaves_nothing_set(self):
        self.start_daemon()
        tool = self.holding(*SET[2:])
        tool.kill()  # the command itself lives on
        self.wait_for_rest()
        self.assertIn("the connection has ended", self.log())
        self.assertEqual(self.user_tool("control", "set", "gpu/power=200W", "--", "true").returncode, 0)

    def test_a_killed_daemon_leaves_nothing_set(self):
        daemon = self.start_daemon()
        tool = self.holding(*SET[2:])
        daemon.kill()
        daemon.wait()
        self.wait_for_rest()
        os.killpg(tool.pid, signal.SIGTERM)
        _, errors = tool.communicate(timeout=60)
        self.assertIn("ergometerd has closed the connection", errors)
        self.start_daemon()
        self.assertEqual(self.user_tool("control", "set", "gpu/power=200W", "--", "true").returncode, 0)

    def test_the_next_daemon_restores_what_a_dead_one_left(self):
        daemon = self.start_daemon()
        self.holding(*SET[2:])
        for pid in self.machine.guardians():
            os.kill(pid, signal.SIGKILL)
        daemon.kill()
        daemon.wait()
        self.assertTrue(wait_until(lambda: not self.machine.guardians()))
        self.assertNotEqual(self.machine.differences(), [])
        self.start_daemon()
        self.wait_for_rest()
        self.assertIn("gpu/0/power restored to 300 W", self.log())

    def test_what_root_left_on_purpose_is_not_the_daemons(self):
        kept = subprocess.run([TOOL, "control", "set", "gpu/0/power=200W"], env=self.env | self.machine.env,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(kept.returncode, 0, kept.stderr)
        self.start_daemon()
        self.assertTrue(wait_until(lambda: "still set on purpose" in self.log()))
        self.assertEqual(self.machine.gpus()[0]["limit_mw"], 200000)
        refused = self.user_tool("control", "set", "gpu/power=250W", "--", "true")
        self.assertIn("ergometer control restore", refused.stderr)

    def test_what_a_dead_program_of_roots_left_is_not_the_daemons(self):
        tool = subprocess.Popen([TOOL, "control", "set", "gpu/0/power=200W", "--", "sleep", "600"], env=self.env | self.machine.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.assertTrue(wait_until(lambda: self.machine.gpus()[0]["limit_mw"] == 200000 and self.machine.guardians()))
        for pid in self.machine.guardians():
            os.kill(pid, signal.SIGKILL)
        os.killpg(tool.pid, signal.SIGKILL)
        tool.wait()
        self.assertTrue(wait_until(lambda: not self.machine.guardians()))
        self.start_daemon()
        self.assertTrue(wait_until(lambda: "which did not restore: gpu/0/power 200 W" in self.log()), self.log())
        self.assertEqual(self.machine.gpus()[0]["limit_mw"], 200000)
        restored = subprocess.run([TOOL, "control", "restore"], env=self.env | self.machine.env, capture_output=True, text=True, timeout=60)
        self.assertIn("1 restored", restored.stdout + restored.stderr)
        self.assertEqual(self.machine.gpus()[0]["limit_mw"], 300000)

    def test_a_stopped_daemon_restores(self):
        daemon = self.start_daemon()
        self.holding(*SET[2:])
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.wait(timeout=60), 0)
        self.assertEqual(self.machine.differences(), [])
        self.assertFalse(os.path.exists(self.machine.journal))

    def test_a_lease_lasts_for_a_command_only(self):
        self.start_daemon()
        done = self.user_tool("control", "set", "gpu/power=250W")
        self.assertEqual(done.returncode, 3)
        self.assertIn("for the time of a command only", done.stderr)
        self.wait_for_rest()

    def test_the_owner_of_an_exclusive_job_may_control_while_it_runs(self):
        self.start_daemon('read-groups = []\nsensors = ["rapl"]\ncontrol-jobs = true\njobs = true\n')
        command = ("control", "set", "gpu/power=250W", "--", "true")
        self.assertEqual(self.user_tool(*command, groups=()).returncode, 3)
        begin = {"job": "12", "uid": USER, "user": "nobody"}
        self.assertEqual(self.say(json.dumps({"job_begin": begin}))[1], {"job": "12", "state": "running"})
        shared = self.user_tool(*command, groups=())
        self.assertEqual(shared.returncode, 3)
        self.assertIn("--exclusive", shared.stderr)
        self.say('{"job_end":{"job":"12"}}', json.dumps({"job_begin": begin | {"job": "13", "exclusive": True}}))
        done = self.user_tool(*command, groups=())
        self.assertEqual(done.returncode, 0, done.stderr)
        # Another user is not its owner.
        self.assertEqual(self.user_tool(*command, groups=(), user=USER - 1).returncode, 3)
        # The job ends while something is set.
        self.holding(groups=())
        self.say('{"job_end":{"job":"13"}}')
        self.wait_for_rest()

    def test_only_root_tells_of_jobs(self):
        self.start_daemon(CONFIG.replace(f'control-groups = ["{GROUP}"]', f'control-users = ["{USER}"]')
                          + "control-jobs = true\njobs = true\n")
        for line in (json.dumps({"job_begin": {"job": "1", "uid": USER, "user": "x", "exclusive": True}}),
                     '{"job_end":{"job":"1"}}'):
            self.assertEqual(self.say(line, user=USER)[1]["error"]["code"], "permission_denied")

    def test_requests_that_a_lease_does_not_cover_are_refused(self):
        self.start_daemon()
        lease = {"do": "lease", "holder": "x", "controls": [
            {"name": "cpu/0/governor", "backend": "cpufreq", "device_id": "policy0", "values": ["performance"]}]}
        greeting, no_lease, leased, other_value, other_control, applied, restored, again = self.say(
            '{"do":"apply","settings":[{"control":0,"value":"performance"}]}',
            json.dumps(lease),
            '{"do":"apply","settings":[{"control":0,"value":"powersave"}]}',
            '{"do":"apply","settings":[{"control":1,"value":"performance"}]}',
            '{"do":"apply","settings":[{"control":0,"value":"performance"}]}',
            '{"do":"restore"}', '{"do":"observe"}')
        self.assertIn("ergometer.daemon/1", greeting["schema"])
        self.assertEqual(no_lease["error"]["code"], "lost")
        self.assertEqual(leased, {"leased": 1})
        self.assertIn("was not named", other_value["error"]["message"])
        self.assertIn("no control 1", other_control["error"]["message"])
        self.assertEqual(applied["applied"], [{"control": 0, "requested": "performance", "effective": "performance",
                                               "in_effect": True}])
        self.assertEqual(restored["restored"][0]["outcome"], "restored")
        self.assertEqual(again["error"]["code"], "lost")
        for broken in ('{"do":"lease","holder":"x"}', json.dumps(lease | {"controls": [lease["controls"][0] | {"values": ["x y"]}]}),
                       json.dumps(lease | {"controls": [lease["controls"][0] | {"device_id": "policy9"}]})):
            self.assertIn("error", self.say(broken)[1])
        self.wait_for_rest()

    def test_a_study_of_an_ordinary_user_sets_power_caps(self):
        self.start_daemon()
        self.machine.user_env["ERGOMETER_SENSORS"] = f"fake={self.write('fake.toml', SCENARIO)}"
        with open(f"{self.machine.home}/t.toml", "w") as file:
            file.write(f'name = "t"\ncommand = "cat {self.dir}/state"\n[factors]\npower_limit = [200, 250]\n'
                       'governor = ["performance"]\n[runs]\norder = "as-listed"\n')
        plan = self.user_tool("study", "plan", "t.toml")
        self.assertNotIn("may not be set", plan.stdout)
        done = self.user_tool("study", "run", "t.toml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.log())
        self.assertIn("2 of 2 runs", done.stderr)
        for run, limit in ((0, "200000"), (1, "250000")):
            with open(f"{self.machine.home}/runs/t/runs/{run:04}.log") as log:
                self.assertIn(f"gpu0 limit_mw {limit}", log.read())
        self.wait_for_rest()
        self.assertIn("study t", self.log())


if __name__ == "__main__":
    unittest.main()
