"""Several ranks on one node: one measures, the others take part."""

from cluster_world import *


class Ranks(ClusterTest):
    def start_ranks(self, size, command, *options, **env):
        """`command` is a shell's; it knows its RANK."""
        return [self.start_rank(self.launch_env(rank, size) | env, "run", "--quiet", *options, "--", "sh", "-c", command)
                for rank in range(size)]

    def test_f92_four_ranks_are_one_node_measured_once(self):
        command = f"{MARK} begin work; sleep 1; {MARK} end work"
        codes, told = self.finish(self.start_ranks(4, command, "-o", "r"))
        self.assertEqual(codes, [0] * 4, told)
        part = self.part("r")
        self.assertEqual(part["state"], "complete")
        self.assertEqual([rank["rank"] for rank in part["ranks"]], [0, 1, 2, 3])
        self.assertEqual([rank["exit_code"] for rank in part["ranks"]], [0] * 4)
        self.assertEqual(part["place"]["run_key"], "torchrun-t")
        self.assertEqual(part["place"]["world_size"], 4)
        self.assertEqual(sorted(row["rank"] for row in self.table("r", "regions.csv")), ["0", "1", "2", "3"])
        # 100 W while the run went on, not 400.
        seconds = (part["end_ns"] - part["begin_ns"]) / 1e9
        self.assertGreater(seconds, 0.9)
        energy = self.summary("r")["run"]["energy_j"]
        self.assertAlmostEqual(energy, 100 * seconds, delta=0.1 * energy)
        self.assertTrue(os.path.exists(self.path("r/summary.json")))

    def test_each_rank_returns_its_own_exit_code_and_the_run_the_first_failure(self):
        codes, _ = self.finish(self.start_ranks(3, "exit $((RANK * 3))", "-o", "r"))
        self.assertEqual(codes, [0, 3, 6])
        part = self.part("r")
        self.assertEqual([rank["exit_code"] for rank in part["ranks"]], [0, 3, 6])
        self.assertEqual(part["exit_code"], 3)

    def test_the_measurement_goes_on_until_the_last_rank_has_ended(self):
        # Whichever rank leads ends at once; a file lets the others end.
        ranks = self.start_ranks(3, f"test $RANK = 0 || while ! test -e {self.path('go')}; do sleep 0.05; done", "-o", "r")
        self.wait_for_file("r/run.json")
        time.sleep(1)
        self.assertEqual(self.part("r")["state"], "running")
        self.write("go", "")
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0] * 3, told)
        part = self.part("r")
        self.assertEqual(part["end_ns"], max(rank["end_ns"] for rank in part["ranks"]))
        self.assertEqual(part["begin_ns"], min(rank["begin_ns"] for rank in part["ranks"]))

    def test_a_default_folder_has_the_name_of_the_launch_and_a_second_run_a_number(self):
        for _ in range(2):
            codes, told = self.finish(self.start_ranks(2, "sleep 0.2", "--name", "x"))
            self.assertEqual(codes, [0, 0], told)
        self.assertEqual(sorted(os.listdir(self.path("runs"))), ["x-torchrun-t", "x-torchrun-t-2"])
        for run in os.listdir(self.path("runs")):
            self.assertEqual(len(self.part(f"runs/{run}")["ranks"]), 2)

    def test_a_folder_that_is_taken_is_refused_by_all(self):
        self.write("r/notes.txt", "mine")
        codes, told = self.finish(self.start_ranks(2, "touch ran", "-o", "r"))
        self.assertEqual(codes, [3, 3])
        self.assertFalse(os.path.exists(self.path("ran")))
        for text in told:
            self.assertIn("is not empty", text)
            self.assertIn("-o", text)

    def test_what_is_required_and_missing_ends_all_ranks(self):
        codes, told = self.finish(self.start_ranks(3, "touch ran", "-o", "r", "--require", "gpu/0"))
        self.assertEqual(codes, [3, 3, 3])
        self.assertFalse(os.path.exists(self.path("ran")))
        self.assertTrue(all("gpu/0" in text for text in told), told)
        self.assertFalse(os.path.exists(self.path("r")), "the name is free again")

    def test_two_launches_at_once_are_two_runs(self):
        ranks = []
        for name in ("a", "b"):
            ranks += [self.start_rank(self.launch_env(rank, 2, name), "run", "--quiet", "-o", name, "--", "sleep", "0.5")
                      for rank in range(2)]
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0] * 4, told)
        for name in ("a", "b"):
            self.assertEqual(len(self.part(name)["ranks"]), 2)

    def test_cpu_time_of_all_ranks_is_in_the_tree(self):
        burn = "import time\nwhile time.process_time() < 1: pass"
        ranks = [self.start_rank(self.launch_env(rank, 3) | {"ERGOMETER_SENSORS": f"procfs,fake={self.path('fake.toml')}"}, "run", "--quiet", "-o", "r", "--",
                                 sys.executable, "-c", burn) for rank in range(3)]
        codes, told = self.finish(ranks, 100)
        self.assertEqual(codes, [0] * 3, told)
        node = os.listdir(self.path("r/nodes"))[0]
        text = subprocess.run(["zstd", "-dcq", self.path(f"r/nodes/{node}/samples/tree.csv.zst")], capture_output=True, text=True)
        if text.returncode:
            self.skipTest("zstd is not installed")
        rows = list(csv.DictReader(io.StringIO(text.stdout)))
        self.assertGreaterEqual(float(rows[-1]["cpu_s"]), 2.9)
        self.assertLess(float(rows[-1]["cpu_s"]), 6)

    def test_gpus_of_all_ranks_are_visible(self):
        self.write("gpus", "gpus = 4\n")
        ranks = [self.start_rank(self.launch_env(rank, 2) | {"ERGOMETER_SENSORS": "nvml", "CUDA_VISIBLE_DEVICES": str(2 * rank),
                                                             "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                                                             "ERGOMETER_FAKE_NVML": self.path("gpus")},
                                 "--nvml", os.environ["FAKE_NVML"], "run", "--quiet", "-o", "r", "--", "sleep", "1.5") for rank in range(2)]
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0, 0], told)
        node = json.loads(self.read(f"r/nodes/{os.listdir(self.path('r/nodes'))[0]}/node.json"))
        self.assertEqual([gpu["visible"] for gpu in node["gpus"]], [True, False, True, False])

    def test_a_killed_leader_does_not_harm_the_others(self):
        ranks = self.start_ranks(3, f"while ! test -e {self.path('go')}; do sleep 0.05; done; touch done$RANK; exit 5", "-o", "r")
        leader = self.leader(3)
        leader_rank = next(i for i, rank in enumerate(ranks) if rank.pid == leader)
        ranks[leader_rank].kill()
        self.write("go", "")
        codes, told = self.finish(ranks)
        for i in range(3):
            if i != leader_rank:
                self.assertEqual(codes[i], 5)
                self.assertIn("ended early", told[i])
        for i in range(3):
            self.wait_for_file(f"done{i}")

    def leader(self, members):
        """The pid of the leader, once all have registered and it is open."""
        found = []

        def ready():
            for folder, _, files in os.walk(self.path("local")):
                if "leader.json" in files:
                    with open(os.path.join(folder, "leader.json")) as file:
                        note = json.load(file)
                    names = [n for n in os.listdir(os.path.join(folder, "members")) if n.endswith(".json")]
                    if note["state"] == "open" and len(names) == members:
                        found[:] = [note["pid"]]
                        return True
            return False
        self.assertTrue(wait_until(ready, 30))
        time.sleep(0.3)
        return found[0]

    def test_a_killed_follower_is_recorded_without_an_exit_code(self):
        ranks = self.start_ranks(3, f"while ! test -e {self.path('go')}; do sleep 0.05; done", "-o", "r")
        leader = self.leader(3)
        victim = next(i for i, rank in enumerate(ranks) if rank.pid != leader)
        ranks[victim].kill()
        self.write("go", "")
        codes, told = self.finish(ranks)
        self.assertEqual([code for i, code in enumerate(codes) if i != victim], [0, 0], told)
        self.assertIsNone(self.part("r")["ranks"][victim]["exit_code"])
        self.assertEqual(self.part("r")["state"], "complete")

    def test_a_signal_reaches_the_commands_and_ends_the_run_in_order(self):
        ranks = self.start_ranks(2, "exec sleep 60", "-o", "r")
        self.leader(2)
        for rank in ranks:
            rank.terminate()
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [143, 143], told)
        part = self.part("r")
        self.assertEqual(part["state"], "complete")
        self.assertEqual([rank["signal"] for rank in part["ranks"]], [15, 15])

    def test_a_rank_that_waits_for_the_leader_can_be_ended(self):
        ranks = self.start_ranks(2, "touch ran", "-o", "r", "--idle-before", "30s")
        self.assertTrue(wait_until(lambda: sum(len([f for f in files if f.endswith(".json") and f.startswith("rank")])
                                               for _, _, files in os.walk(self.path("local"))) == 2, 30))
        for rank in ranks:
            rank.terminate()
        codes, _ = self.finish(ranks)
        self.assertEqual(codes[0] in (143, 3) and codes[1] in (143, 3), True, codes)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_without_node_local_storage_one_rank_measures_and_the_others_run(self):
        codes, told = self.finish(self.start_ranks(2, "touch ran$RANK; sleep 0.5", "-o", "r", ERGOMETER_LOCAL_DIR="/proc/none"))
        self.assertEqual(codes, [0, 0], told)
        self.wait_for_file("ran0")
        self.wait_for_file("ran1")
        self.assertEqual(len(self.part("r")["ranks"]), 1)
        self.assertTrue(any("ERGOMETER_LOCAL_DIR" in text for text in told), told)

    def test_a_launch_of_one_rank_is_an_ordinary_run(self):
        codes, told = self.finish([self.start_rank(self.launch_env(0, 1), "run", "--quiet", "-o", "r", "--", "true")])
        self.assertEqual(codes, [0], told)
        self.assertNotIn("parts", self.manifest("r"))
        self.assertTrue(os.path.isdir(self.path("r/nodes")))
        self.assertEqual(os.listdir(self.path("local")), [])

    def test_without_a_launcher_no_file_of_it_is_touched(self):
        done = self.tool("run", "--quiet", "-o", "r", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(self.path("local")), [])
        self.assertNotIn("place", self.manifest("r"))

    def test_a_launcher_that_names_nothing_is_told(self):
        env = self.env | {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}
        codes, told = self.finish([self.start_rank(env, "run", "--quiet", "-o", "r", "--", "true")])
        self.assertEqual(codes, [0])
        self.assertIn("ERGOMETER_LAUNCH", told[0])

    def test_epochs_of_lines_belong_to_their_rank(self):
        codes, told = self.finish(self.start_ranks(2, "for i in 0 1; do echo Epoch $i; sleep 0.2; done", "-o", "r",
                                                   "--epoch-regex", "Epoch ([0-9]+)"))
        self.assertEqual(codes, [0, 0], told)
        rows = self.table("r", "regions.csv")
        self.assertEqual(sorted((row["rank"], row["path"]) for row in rows),
                         [("0", "epoch[0]"), ("0", "epoch[1]"), ("1", "epoch[0]"), ("1", "epoch[1]")])


class Step(ClusterTest):
    def start_step(self, *options, root=None):
        env = {k: v for k, v in self.step_env(0, 1, 0, 2).items() if k not in ("SLURM_PROCID", "SLURM_LOCALID")}
        env["SLURM_PROCID"] = "0"
        until, self.until = os.pipe()
        ready, told = os.pipe()
        os.set_inheritable(until, True)
        os.set_inheritable(told, True)
        step = self.start_rank(env, "step", "--until-fd", str(until), "--ready-fd", str(told), "--root-pid",
                               str(root or os.getpid()), *options, pass_fds=(until, told))
        os.close(until)
        os.close(told)
        with os.fdopen(ready) as file:
            self.markers = file.readline().strip()
        return step

    def test_a_step_is_measured_until_its_descriptor_closes(self):
        step = self.start_step("-o", "r")
        self.assertTrue(os.path.isdir(os.path.join(self.markers, "markers")))
        os.write(self.until, b"begin 0 100\nbegin 1 101\n")
        marked = subprocess.run(["sh", "-c", f"{MARK} begin work; sleep 0.5; {MARK} end work"],
                                env=self.env | {"ERGOMETER_RUN": self.markers, "SLURM_PROCID": "1"}, capture_output=True)
        self.assertEqual(marked.returncode, 0, marked.stderr)
        os.write(self.until, b"end 0 0\nend 1 139\n")
        os.close(self.until)
        codes, told = self.finish([step])
        self.assertEqual(codes, [0], told)
        part = self.part("r")
        self.assertEqual(part["state"], "complete")
        self.assertEqual([(r["rank"], r["pid"], r["exit_code"], r["signal"]) for r in part["ranks"]],
                         [(0, 100, 0, None), (1, 101, 139, 11)])
        self.assertEqual(part["exit_code"], 139)
        self.assertEqual([row["path"] for row in self.table("r", "regions.csv")], ["work"])
        self.assertTrue(os.path.exists(self.path("r/summary.json")))

    def test_a_run_inside_a_step_takes_part_in_its_run(self):
        step = self.start_step("-o", "r")
        for name in ("first", "second"):
            inside = subprocess.run([TOOL, "run", "--quiet", "-o", name, "--", "sh", "-c", "echo $ERGOMETER_RUN; exit 4"],
                                    env=self.step_env(0, 1, 1, 2), cwd=self.dir, capture_output=True, text=True)
            self.assertEqual(inside.returncode, 4, inside.stderr)
            self.assertEqual(inside.stdout.strip(), self.markers)
            self.assertFalse(os.path.exists(self.path(name)))
        os.close(self.until)
        codes, told = self.finish([step])
        self.assertEqual(codes, [0], told)
        self.assertEqual([r["exit_code"] for r in self.part("r")["ranks"]], [4, 4])

    def test_a_step_ends_in_order_when_it_is_told_by_a_signal(self):
        step = self.start_step("-o", "r")
        self.wait_for_file("r/run.json")
        time.sleep(0.5)
        step.terminate()
        codes, told = self.finish([step])
        self.assertEqual(codes, [0], told)
        self.assertEqual(self.part("r")["state"], "complete")
        os.close(self.until)

    def test_outside_a_step_there_is_nothing_to_measure(self):
        done = self.tool("step", "--until-fd", "0", "--root-pid", "1", text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("Slurm", done.stderr)


if __name__ == "__main__":
    unittest.main()
