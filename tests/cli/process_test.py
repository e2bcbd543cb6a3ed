"""ergometer run: the command's process tree, signals, exit code and streams stay what they are without it."""

from harness import *


class ExitCodes(CliTest):
    def test_own_code(self):
        self.assertEqual(self.tool("run", "--", "sh", "-c", "exit 7").returncode, 7)

    def test_success(self):
        done = self.tool("run", "-o", "r", "--", "sleep", "0.05")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(self.duration_s("r"), 0.05)
        self.assertEqual(self.manifest("r")["state"], "complete")

    def test_signal(self):
        done = self.tool("run", "-o", "r", "--", "sh", "-c", "kill -SEGV $$")
        self.assertEqual(done.returncode, 128 + signal.SIGSEGV)
        self.assertEqual(self.manifest("r")["signal"], signal.SIGSEGV)
        self.assertEqual(self.manifest("r")["exit_code"], 128 + signal.SIGSEGV)

    def test_not_found(self):
        done = self.tool("run", "--", "no-such-command")
        self.assertEqual(done.returncode, 127)
        self.assertIn(b"no-such-command: command not found", done.stderr)
        self.assertFalse(os.path.exists(self.path("runs")), "nothing may be measured")
        self.assertEqual(self.tool("run", "--", "./nor-this").returncode, 127)

    def test_not_executable(self):
        self.write("plain", "echo hello\n")
        done = self.tool("run", "--", "./plain")
        self.assertEqual(done.returncode, 126)
        self.assertIn(b"chmod +x ./plain", done.stderr)
        self.assertEqual(self.tool("run", "--", self.dir).returncode, 126)
        self.assertFalse(os.path.exists(self.path("runs")))

    def test_not_executable_along_path(self):
        self.write("first/tool", "no", 0o644)
        self.write("second/tool", "#!/bin/sh\nexit 5\n", 0o755)
        self.env["PATH"] = f"{self.path('first')}:{self.path('second')}:{self.env['PATH']}"
        self.assertEqual(self.tool("run", "--", "tool").returncode, 5)
        os.remove(self.path("second/tool"))
        self.assertEqual(self.tool("run", "--", "tool").returncode, 126)

    def test_missing_interpreter(self):
        self.write("script", "#!/no/such/interpreter\n", 0o755)
        done = self.tool("run", "-o", "r", "--", "./script")
        self.assertEqual(done.returncode, 126)
        self.assertIn(b"interpreter", done.stderr)

    def test_script_without_interpreter_line(self):
        self.write("script", 'echo "$1"; exit 9\n', 0o755)
        done = self.tool("run", "--", "./script", "word")
        self.assertEqual((done.returncode, done.stdout), (9, b"word\n"))


class Streams(CliTest):
    def test_output_untouched(self):
        data = bytes(range(256)) * 4096
        with open(self.path("data"), "wb") as file:
            file.write(data)
        done = self.tool("run", "--", "cat", "data")
        self.assertEqual(done.stdout, data)

    def test_standard_input(self):
        done = self.tool("run", "--quiet", "--", "tr", "a-z", "A-Z", stdin=None, input=b"through and through\n")
        self.assertEqual(done.stdout, b"THROUGH AND THROUGH\n")

    def test_error_stream_only_gets_the_summary(self):
        done = self.tool("run", "--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(done.stdout, b"out\n")
        self.assertTrue(done.stderr.startswith(b"err\n"), done.stderr)
        self.assertNotIn(b"\x1b", done.stderr, "no live line where there is no terminal")

    def test_quiet(self):
        done = self.tool("run", "--quiet", "-o", "r", "--sensors", "procfs", "--", "true")
        self.assertNotIn(b"run:", done.stderr)
        self.assertTrue(os.path.exists(self.path("r/summary.json")))

    def test_json(self):
        self.write("fake.toml", SCENARIO)
        done = self.tool("run", "--json", "--sensors", "fake=fake.toml", "--", "sh", "-c", "echo out; sleep 0.3")
        self.assertEqual(done.stdout, b"out\n")
        self.assertEqual(json.loads(done.stderr)["schema"], "ergometer.summary/1")

    def test_working_directory_and_environment(self):
        self.env["KEEP"] = "this"
        done = self.tool("run", "-o", "r", "--", "sh", "-c", "pwd; echo $KEEP; echo $ERGOMETER_RUN")
        self.assertEqual(done.stdout.decode().split("\n")[:3],
                         [os.path.realpath(self.dir), "this", os.path.join(os.path.realpath(self.dir), "r")])

    def test_closed_reader_ends_the_command(self):
        shell = f"{TOOL} run --quiet -- yes | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], cwd=self.dir, env=self.env, capture_output=True, timeout=30)
        self.assertEqual((done.stdout, done.returncode), (b"y\n", 128 + signal.SIGPIPE))

    def test_nested(self):
        done = self.tool("run", "-o", "outer", "--", TOOL, "run", "-o", "inner", "--", "sh", "-c",
                         "echo $ERGOMETER_RUN; exit 4")
        self.assertEqual(done.returncode, 4)
        self.assertTrue(done.stdout.decode().strip().endswith("/inner"))
        self.assertEqual(self.manifest("inner")["exit_code"], 4)
        self.assertEqual(self.manifest("outer")["exit_code"], 4)


class SignalsAndTrees(CliTest):
    def begin(self, *command, run="r", **options):
        """Starts a run whose command touches "ready", and waits for that."""
        tool = self.start("run", "-o", run, "--", *command, **options)
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ready"))), "the command did not begin")
        return tool

    def interrupted(self, number):
        tool = self.begin("sh", "-c", "touch ready; exec sleep 100")
        began = self.manifest("r")
        pid = [int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(p) == tool.pid][0]
        time.sleep(2)
        tool.send_signal(number)
        self.assertEqual(tool.wait(timeout=10), 128 + number)
        self.assertIn(b"run: r", tool.stderr.read())
        self.assertEqual(began["state"], "running")
        manifest = self.manifest("r")
        self.assertEqual((manifest["state"], manifest["signal"], manifest["exit_code"]),
                         ("complete", number, 128 + number))
        self.assertAlmostEqual(self.duration_s("r"), 2, delta=0.5)
        self.assertFalse(alive(pid))

    def test_F63_interrupt(self):
        self.interrupted(signal.SIGINT)

    def test_F63_terminate(self):
        self.interrupted(signal.SIGTERM)

    def test_F64_grandchildren(self):
        tool = self.begin("sh", "-c", "sleep 1000 & echo $! > a; sleep 1000 & echo $! > b; touch ready; wait")
        tool.terminate()
        self.assertEqual(tool.wait(timeout=10), 143)
        for name in "a", "b":
            self.assertFalse(alive(int(self.read(name))))

    def test_F64_grandchild_that_ignores_the_signal(self):
        stubborn = "trap '' TERM; echo $$ > a; touch ready; while :; do sleep 0.1; done"
        self.write("stubborn", f"#!/bin/sh\n{stubborn}\n", 0o755)
        # The caller shares our group with the tool: it must not be hit.
        caller = subprocess.Popen(["sleep", "60"])
        self.addCleanup(self.end, caller)
        tool = self.begin("sh", "-c", "./stubborn & wait")
        tool.terminate()
        self.assertEqual(tool.wait(timeout=20), 143)
        self.assertFalse(alive(int(self.read("a"))))
        self.assertIsNone(caller.poll())

    def test_F70_informing_signal(self):
        for number in signal.SIGUSR1, signal.SIGUSR2:
            with self.subTest(number):
                for name in "ready", "seen":
                    if os.path.exists(self.path(name)):
                        os.remove(self.path(name))
                run = f"r{int(number)}"
                child = (f"trap 'touch seen; sleep 2; exit 7' {int(number)}; touch ready; "
                         "while :; do sleep 0.05; done")
                tool = self.begin("sh", "-c", child, run=run)
                sent = time.monotonic()
                tool.send_signal(number)
                self.assertEqual(tool.wait(timeout=10), 7)
                self.assertTrue(os.path.exists(self.path("seen")))
                self.assertGreaterEqual(self.duration_s(run), 2)
                self.assertEqual(self.manifest(run)["state"], "complete")

    def test_hangup_ignored_stays_ignored(self):
        done = subprocess.Popen(["sh", "-c", f"trap '' HUP; exec {TOOL} run -o r -- sh -c 'touch ready; sleep 1.5'"],
                                cwd=self.dir, env=self.env, stderr=subprocess.PIPE)
        self.addCleanup(self.end, done)
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ready"))))
        done.send_signal(signal.SIGHUP)
        self.assertEqual(done.wait(timeout=10), 0)

    def test_signal_dispositions_and_mask_are_inherited(self):
        show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
        without = subprocess.run(["sh", "-c", show], capture_output=True, env=self.env)
        within = self.tool("run", "--quiet", "--", "sh", "-c", show)
        self.assertEqual(within.stdout, without.stdout)

    def test_background_child_is_left_alone(self):
        tool = self.tool("run", "--", "sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!")
        pid = int(tool.stdout)
        self.assertEqual(tool.returncode, 0)
        self.assertTrue(alive(pid))
        os.kill(pid, signal.SIGKILL)

    def test_killed_tool_leaves_a_readable_run(self):
        self.write("fake.toml", SCENARIO)
        tool = self.start("run", "-o", "r", "--sensors", "fake=fake.toml", "--", "sh", "-c",
                          "echo $$ > pid; touch ready; exec sleep 30")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ready"))))
        time.sleep(2.5)
        tool.kill()
        tool.wait()
        os.kill(int(self.read("pid")), signal.SIGKILL)
        self.assertEqual(self.manifest("r")["state"], "running")
        shown = self.tool("show", "r", "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        energy = json.loads(shown.stdout)["run"]["energy_j"]
        self.assertGreater(energy, 100, "at most the last second may be lost")


    def test_F107_a_killed_run_blocks_no_later_one(self):
        # There is no lock file: two runs never share a folder, and a folder belongs to one run for ever.
        for name in ("runs/.lock", "runs/ergometer.lock", "runs/ergometer.pid"):
            self.write(name, "999999\n", 0o000)
        tool = self.start("run", "--", "sh", "-c", "echo $$ > pid; touch ready; exec sleep 30")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ready"))))
        tool.kill()
        tool.wait()
        os.kill(int(self.read("pid")), signal.SIGKILL)
        again = self.tool("run", "--", "sh", "-c", "exit 4")
        self.assertEqual(again.returncode, 4, again.stderr)
        runs = [name for name in os.listdir(self.path("runs")) if name.startswith("sh-")]
        self.assertEqual(sorted(self.manifest(f"runs/{run}")["state"] for run in runs), ["complete", "running"])


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return -1


class Trees(CliTest):
    def test_F68_cpu_of_the_tree(self):
        # A grandchild burns one core for a second; its parents sleep.
        burn = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
        self.write("burn.py", burn)
        done = self.tool("run", "-o", "r", "--json", "--sensors", "procfs,model", "--epoch-regex", "Epoch", "--", "sh",
                         "-c", f"echo Epoch; {sys.executable} burn.py & wait")
        self.assertEqual(done.returncode, 0, done.stderr)
        metrics = {}
        for region in json.loads(done.stderr)["regions"]:
            metrics.update(region["metrics"])
        shares = [value for name, value in metrics.items() if name.startswith("tree/cpu")]
        self.assertTrue(shares, f"no CPU share of the tree among {sorted(metrics)}")
        self.assertTrue(all(share > 0.3 for share in shares), shares)

    def test_F95_two_at_once(self):
        tools = [self.start("run", "--name", "same", "--", "sleep", "1") for _ in range(3)]
        self.assertEqual([tool.wait(timeout=30) for tool in tools], [0, 0, 0])
        runs = os.listdir(self.path("runs"))
        self.assertEqual(len(runs), 3)
        for run in runs:
            self.assertEqual(self.manifest(f"runs/{run}")["state"], "complete")
            self.assertGreaterEqual(self.duration_s(f"runs/{run}"), 1)


if __name__ == "__main__":
    unittest.main()
