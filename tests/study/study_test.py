"""ergometer study and bench, driven from outside: plan, run, resume, status, show, and every mistake of theirs."""

from study_world import *


class Plans(StudyTest):
    def test_a_plan_changes_nothing(self):
        self.write("t.toml", study_text("a = [1, 2]\nranks = [1]"))
        done = self.study("plan", "t.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 cells (full), 1 repetition, 2 runs", done.stdout)
        self.assertEqual(os.path.exists(self.path("runs")), False)

    def test_frey2022_on_eight_v100(self):
        scenario = self.write("v100", "gpus = 8\ngpu.name = Tesla V100-PCIE-32GB\ngpu.limit = 250\ngpu.limit_default = 250\n"
                              "gpu.limit_min = 100\ngpu.limit_max = 250\ngpu.clocks = 135 1380 15\n")
        env = self.env | {"ERGOMETER_NVML": os.environ["FAKE_NVML"], "ERGOMETER_FAKE_NVML": scenario,
                          "ERGOMETER_HOST_ROOT": self.root}
        done = self.study("plan", "frey2022", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpu/0/power to gpu/7/power (8): 100 W, 200 W, 250 W", done.stdout)
        self.assertIn("gpu/0/clock to gpu/7/clock (8): 135 MHz, 735 MHz, 1380 MHz", done.stdout)
        self.assertRegex(done.stdout, r"power_limit +40%, 80%, 100% +100 W, 200 W, 250 W")
        self.assertIn("288 cells", done.stdout)
        done = self.study("plan", "frey2022", "--design", "one-at-a-time", env=env)
        self.assertIn("15 cells (one-at-a-time)", done.stdout)

    def test_what_the_machine_lacks(self):
        self.write("t.toml", study_text("a = [1]\ngpus = [1, 2]", command="no-such-program {a}"))
        done = self.study("plan", "t.toml", env=self.env | {"ERGOMETER_HOST_ROOT": self.root})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpus 2: this machine has 0", done.stdout)
        self.assertIn("there is no program no-such-program", done.stdout)

    def test_unknown_studies_and_words(self):
        for arguments, message, hint in ((["plan", "dmo"], 'no study "dmo"', "did you mean demo?"),
                                         (["plan", "demo", "--set", "dat=x"], 'no parameter "dat"', "--set data="),
                                         (["plan", "demo", "--set", "data"], "sets nothing", "--set NAME=VALUE"),
                                         (["plan", "demo", "--levels", "rank=1"], '"rank"', "--levels ranks="),
                                         (["status", "demo"], "has not begun", "ergometer study run demo")):
            done = self.study(*arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(message, done.stderr)
            self.assertIn(hint, done.stderr)


class Schema(StudyTest):
    """docs/study.schema.json knows the keys that the program knows."""

    def test_known_keys_are_the_schemas(self):
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "docs/study.schema.json")) as file:
            schema = json.load(file)["properties"]
        # An unknown key's error lists those that are known.
        for table in ("design", "runs", "validity", "where"):
            self.write("t.toml", study_text("a = [1]", rest=f"[{table}]\nqqqqqqqqqqqqqqqqqqqq = 1"))
            hint = self.study("plan", "t.toml").stderr
            known = hint.split("known are: ")[1].strip().split(", ")
            self.assertEqual(sorted(known), sorted(schema[table]["properties"]), table)


class Runs(StudyTest):
    def test_a_study_runs_and_is_shown(self):
        self.write("t.toml", study_text("a = [1, 2]\nb = { levels = [3, 4], environment = \"B\" }",
                                        command="sh -c 'echo {a} $B; sleep 0.3'", rest="[runs]\nrepetitions = 2"))
        done = self.run_study("t.toml")
        self.assertIn("8 of 8 runs: 8 valid", done.stderr)
        table = self.table_json()
        self.assertEqual(table["schema"], "ergometer.study-table/1")
        self.assertEqual(len(table["runs"]), 8)
        self.assertTrue(all(run["verdict"] == "valid" for run in table["runs"]))
        plan = json.loads(self.read("runs/t/plan.json"))
        for run, (cell, _) in enumerate(plan["runs"]):
            a, b = plan["cells"][cell]
            self.assertIn(f"{a + 1} {b + 3}\n", self.read(f"runs/t/runs/{run:04}.log"))
        shown = self.study("show", "t.toml")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("Effects on energy", shown.stdout)
        # 100 W throughout.
        energy = table["runs"][0]["metrics"]["energy_j"]
        duration = table["runs"][0]["metrics"]["duration_s"]
        self.assertAlmostEqual(energy["value"] / duration["value"], 100, delta=15)
        again = self.run_study("t.toml")
        self.assertIn("8 of 8 runs", again.stderr)
        self.assertEqual(len(self.started()), 8)
        self.assertIn("8 valid, 0 invalid, 0 failed", self.study("status", "runs/t").stdout)

    def test_it_goes_on_after_an_interruption(self):
        self.write("t.toml", study_text("a = [1, 2, 3, 4]", command="sh -c 'echo {a}; sleep 0.3'"))
        tool = self.start("study", "run", "t.toml")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("runs/t/journal.jsonl")) and len(self.ended()) >= 1, 60))
        tool.send_signal(signal.SIGINT)
        self.assertEqual(tool.wait(timeout=60), 128 + signal.SIGINT)
        finished = {line["run"] for line in self.ended()}
        self.assertLess(len(finished), 4)
        self.run_study("runs/t")
        self.assertEqual(sorted(line["run"] for line in self.ended()), [0, 1, 2, 3])
        for run in finished:
            self.assertEqual(self.started().count(run), 1)

    def test_a_changed_file_is_refused(self):
        text = study_text("a = [1, 2]")
        self.write("t.toml", text)
        self.run_study("t.toml")
        self.write("t.toml", text.replace("[1, 2]", "[1, 3]"))
        done = self.run_study("t.toml", code=2)
        self.assertIn("t.toml has changed since the study in ", done.stderr)
        self.assertIn("began: line 4 was `a = [1, 2]` and is `a = [1, 3]`",
                      done.stderr)
        self.assertIn("-o FOLDER", done.stderr)
        self.write("t.toml", text)
        self.run_study("t.toml")

    def test_failures_are_marked_and_the_study_goes_on(self):
        self.write("t.toml", study_text("a = [0, 7]", command="sh -c 'echo trouble; exit {a}'", rest="[runs]\nrepetitions = 2"))
        done = self.run_study("t.toml", code=1)
        self.assertIn("2 valid, 0 invalid, 2 failed", done.stderr)
        self.assertIn("exit code 7: trouble", self.study("status", "t.toml").stdout)
        self.assertEqual(len(self.started()), 4)
        self.run_study("t.toml", "--retry", code=1)
        self.assertEqual(len(self.started()), 6)

    def test_a_command_that_fails_in_every_cell_ends_the_study(self):
        self.write("t.toml", study_text("a = [1, 2, 3, 4, 5, 6]", command="sh -c 'echo no data; exit {a}'"))
        done = self.run_study("t.toml", code=3)
        self.assertIn("the command failed in every one of the first 3 cells: exit code", done.stderr)
        self.assertIn("no data", done.stderr)
        self.assertEqual(len(self.started()), 3)

    def test_a_program_that_is_not_there(self):
        self.write("t.toml", study_text("a = [1, 2]", command="no-such-program {a}"))
        done = self.run_study("t.toml", code=2)
        self.assertIn("there is no program no-such-program", done.stderr)
        self.assertFalse(os.path.exists(self.path("runs/t")))

    def test_a_time_out(self):
        self.write("t.toml", study_text("a = [1, 60]", command="sleep 0.{a}", rest="").replace("0.{a}", "{a}")
                   + '[runs]\ntime_out = "3s"\n')
        done = self.run_study("t.toml", code=1)
        self.assertIn("it did not end within 3 s", done.stderr)
        self.assertIn("1 valid, 0 invalid, 1 failed", done.stderr)

    def test_stop_at_the_first_failure_and_retry(self):
        self.write("t.toml", study_text("a = [0, 1]", command="sh -c 'exit {a}'",
                                        rest='[runs]\norder = "as-listed"\nrepetitions = 2\non_failure = "stop"'))
        done = self.run_study("t.toml", code=1)
        self.assertIn("stopped: run 1 failed", done.stderr)
        self.write("r.toml", study_text("a = [0]", command=f"sh -c 'test -e {self.dir}/once || {{ touch {self.dir}/once; exit 1; }}'",
                                        rest='[runs]\non_failure = "retry"', name="r").replace("a = [0]", "ranks = [1]"))
        self.run_study("r.toml")
        self.assertEqual(self.started("runs/r"), [0, 0])

    def test_budgets(self):
        self.write("t.toml", study_text("a = [1, 2, 3]", command="sh -c 'echo {a}; sleep 0.3'", rest='[runs]\nenergy_budget = "1J"'))
        done = self.run_study("t.toml")
        self.assertIn("stopped: the energy budget of 1 J is spent", done.stderr)
        self.assertEqual(len(self.started()), 1)
        self.write("s.toml", study_text("a = [1, 2, 3]", rest='[runs]\ntime_budget = "1ms"', name="s"))
        self.assertIn("the time budget of 0.001 s is spent", self.run_study("s.toml").stderr)

    def test_repeats_until_the_interval_is_narrow(self):
        self.write("t.toml", study_text("a = [1]", command="sh -c 'echo {a}; sleep 0.4'",
                                        rest='[runs]\nrepetitions = 2\nuntil = { metric = "duration_s", interval = "99%", at_most = 50 }'))
        self.run_study("t.toml")
        self.assertGreaterEqual(len(self.ended()), 2)
        self.assertLess(len(self.ended()), 50)
        self.assertEqual(len(self.table_json()["runs"]), len(self.ended()))

    def test_warm_up_runs_count_for_nothing(self):
        self.write("t.toml", study_text("a = [1]", command=f"sh -c 'echo {{a}} >> {self.dir}/all'", rest="[runs]\nwarm_up = 2\nrepetitions = 2"))
        self.run_study("t.toml")
        self.assertEqual(len(self.ended()), 2)
        self.assertEqual(len(self.read("all").splitlines()), 6)

    def test_ranks_are_copies_with_numbers(self):
        self.write("t.toml", study_text("ranks = [1, 3]", command="sh -c 'echo rank $RANK of $WORLD_SIZE'", rest='[runs]\norder = "as-listed"'))
        self.run_study("t.toml")
        lines = self.read("runs/t/runs/0001.log").splitlines()
        self.assertEqual(sorted(line for line in lines if line.startswith("rank ")), [f"rank {i} of 3" for i in range(3)])

    def test_two_studies_on_one_node(self):
        for name in ("t", "s"):
            self.write(f"{name}.toml", study_text("a = [1]", command="sh -c 'echo {a}; sleep 30'", name=name))
        env = self.env | {"ERGOMETER_HOST_ROOT": self.root, "ERGOMETER_NVML": "/nonexistent"}
        tool = self.start("study", "run", "t.toml", env=env)
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("runs/t/journal.jsonl")) and self.started(), 60))
        for arguments in (["t.toml"], ["s.toml"]):
            done = self.run_study(*arguments, code=2, env=env)
            self.assertIn(f"PID {tool.pid} (study t in", done.stderr)
        tool.send_signal(signal.SIGTERM)
        self.assertEqual(tool.wait(timeout=60), 128 + signal.SIGTERM)

    def test_a_full_disk_in_the_middle_loses_nothing(self):
        disk = self.path("disk")
        os.makedirs(disk)
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], capture_output=True).returncode:
            self.skipTest("no small file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        self.write("t.toml", study_text("a = [1, 2, 3]", command=f"sh -c 'test {{a}} = 1 || head -c 4m /dev/zero > {disk}/filler; sleep 0.2'",
                                        rest='[runs]\norder = "as-listed"'))
        done = self.study("run", "t.toml", "-o", f"{disk}/t")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("No space left", done.stderr)
        os.remove(f"{disk}/filler")
        state = self.study("status", f"{disk}/t")
        self.assertEqual(state.returncode, 0, state.stderr)
        with open(f"{disk}/t/journal.jsonl") as file:
            first = [json.loads(line) for line in file]
        self.assertEqual([line["run"] for line in first if line["kind"] == "ended" and line["verdict"] == "valid"], [0])


class Bench(StudyTest):
    def test_a_bench_is_a_study_whose_file_it_writes(self):
        done = self.tool("bench", "--batch", "16,32", "--repeat", "2", "-o", "b", "--", "sh", "-c", "echo {batch}; sleep 0.2", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('batch = [16, 32]', self.read("b/study.toml"))
        self.assertEqual(len(self.table_json("b")["runs"]), 4)
        self.assertIn("Effects on energy", done.stdout)

    def test_neither_or_both(self):
        for arguments in ([], ["resnet50", "--", "true"]):
            done = self.tool("bench", *arguments, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn("either a workload or a command", done.stderr)


if __name__ == "__main__":
    unittest.main()
