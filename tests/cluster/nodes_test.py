"""One run over several nodes: each has a host root, a clock or a network of its own, and all share the run's folder."""

from cluster_world import *


def can_unshare(*options):
    return os.geteuid() == 0 and shutil.which("unshare") and subprocess.run(["unshare", *options, "true"]).returncode == 0


class Nodes(ClusterTest):
    def start_nodes(self, nodes, command, *options, ranks_a_node=1, which=None):
        """Ranks on `nodes` nodes, or on those of them that are in `which`."""
        ranks = []
        for node in range(nodes) if which is None else which:
            for local in range(ranks_a_node):
                env = self.step_env(node, nodes, node * ranks_a_node + local, ranks_a_node)
                env["ERGOMETER_HOST_ROOT"] = self.node_root(node)
                ranks.append(self.start_rank(env, "run", "--quiet", *options, "--", "sh", "-c", command))
        return ranks

    def nodes_of(self, run):
        return sorted(name for name in os.listdir(self.path(f"{run}/nodes")) if not name.startswith("."))

    def test_three_nodes_of_two_ranks_are_the_sum_of_three_nodes(self):
        codes, told = self.finish(self.start_nodes(3, f"{MARK} begin work; sleep 1; {MARK} end work", "--name", "x", ranks_a_node=2))
        self.assertEqual(codes, [0] * 6, told)
        run = "runs/x-slurm-77.0"
        self.assertEqual(self.nodes_of(run), ["n1", "n2", "n3"])
        manifest = self.manifest(run)
        self.assertEqual(manifest["nodes"], ["n1", "n2", "n3"])
        self.assertEqual((manifest["parts"]["nodes"], manifest["parts"]["ranks"]), (3, 6))
        parts = [self.part(run, node) for node in ("n1", "n2", "n3")]
        self.assertEqual([rank["rank"] for part in parts for rank in part["ranks"]], [0, 1, 2, 3, 4, 5])
        # One kernel, so one clock.
        self.assertEqual({part["clock"]["method"] for part in parts}, {"same"})
        self.assertEqual(len(self.table(run, "regions.csv")), 6)
        with open(self.path(f"{run}/summary.json")) as file:
            summary = json.load(file)
        energies = [sum(d["energy_j"] for d in node["domains"] if d["in_total"]) for node in summary["nodes"]]
        self.assertEqual(len(energies), 3)
        self.assertAlmostEqual(summary["run"]["energy_j"], sum(energies), delta=1e-6 * sum(energies))

    def test_two_names_of_one_machine_are_one_node(self):
        ranks = [self.start_rank(self.step_env(node, 2, node), "run", "--quiet", "-o", "r", "--", "sleep", "0.7") for node in range(2)]
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0, 0], told)
        part = self.part("r")
        names = {part["place"]["node"], *part["place"]["aliases"]}
        self.assertEqual(names, {"n1", "n2"})
        self.assertEqual({rank["node"] for rank in part["ranks"]}, {"n1", "n2"})
        self.assertTrue(os.path.exists(self.path("r/summary.json")), "n2 has come, under another name")

    def test_a_node_that_never_comes_is_named(self):
        ranks = self.start_nodes(3, "sleep 0.3", "-o", "r", which=(0, 2))
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0, 0], told)
        self.assertFalse(os.path.exists(self.path("r/summary.json")), "a part of a run has no summary to keep")
        shown = self.tool("show", "r", text=True)
        self.assertIn("n2", shown.stdout + shown.stderr)

    def test_a_node_that_never_comes_is_told_at_the_end(self):
        env = self.step_env(0, 2, 0) | {"ERGOMETER_HOST_ROOT": self.node_root(0)}
        codes, told = self.finish([self.start_rank(env, "run", "-o", "r", "--", "true")])
        self.assertEqual(codes, [0])
        self.assertIn("never came: n2", told[0])
        self.assertIn("ergometer show", told[0])

    def test_a_node_that_comes_late_takes_part(self):
        first = self.start_nodes(2, f"while ! test -e {self.path('go')}; do sleep 0.05; done", "-o", "r", which=(0,))
        self.wait_for_part("r", "n1")
        late = self.start_nodes(2, "true", "-o", "r", which=(1,))
        codes, told = self.finish(late)
        self.assertEqual(codes, [0], told)
        self.write("go", "")
        codes, told = self.finish(first)
        self.assertEqual(codes, [0], told)
        self.assertEqual(self.nodes_of("r"), ["n1", "n2"])
        self.assertTrue(os.path.exists(self.path("r/summary.json")))

    def test_a_node_that_dies_leaves_the_others_complete(self):
        ranks = self.start_nodes(2, f"while ! test -e {self.path('go')}; do sleep 0.05; done", "-o", "r")
        for node in ("n1", "n2"):
            self.wait_for_part("r", node)
        time.sleep(1)
        ranks[1].kill()
        self.write("go", "")
        codes, told = self.finish(ranks)
        self.assertEqual(codes[0], 0, told)
        self.assertEqual(self.part("r", "n1")["state"], "complete")
        self.assertEqual(self.part("r", "n2")["state"], "running")
        shown = self.tool("show", "r", text=True)
        self.assertIn("n2", shown.stdout + shown.stderr)

    def test_two_machines_of_one_name_have_folders_of_their_own(self):
        ranks = []
        for node in range(2):
            env = self.launch_env(node, 2, local_size=1) | {"ERGOMETER_HOST_ROOT": self.node_root(node), "GROUP_WORLD_SIZE": "2"}
            self.write(f"root{node}/proc/sys/kernel/hostname", "gpu\n")
            ranks.append(self.start_rank(env, "run", "--quiet", "-o", "r", "--", "sleep", "0.5"))
        codes, told = self.finish(ranks)
        self.assertEqual(codes, [0, 0], told)
        names = self.nodes_of("r")
        self.assertEqual(len(names), 2)
        self.assertTrue(all(name.startswith("gpu") for name in names), names)

    def test_another_launch_is_not_mixed_in(self):
        codes, told = self.finish(self.start_nodes(2, "true", "-o", "r"))
        self.assertEqual(codes, [0, 0], told)
        env = self.step_env(1, 2, 1, job="78") | {"ERGOMETER_HOST_ROOT": self.node_root(1)}
        codes, told = self.finish([self.start_rank(env, "run", "--quiet", "-o", "r", "--", "true")])
        self.assertEqual(codes, [3])
        self.assertIn("slurm-77.0", told[0])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "mounting needs root")
    def test_a_shared_folder_that_cannot_be_written_ends_all_ranks_of_a_node(self):
        for options, word in (("ro,size=64k", "Read-only"), ("size=4k,nr_inodes=3", "No space")):
            with self.subTest(options):
                disk = self.path("disk")
                os.makedirs(disk, exist_ok=True)
                if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk]).returncode:
                    self.skipTest("nothing can be mounted here")
                try:
                    ranks = self.start_nodes(1, "touch ran", "-o", "disk/r", ranks_a_node=2)
                    codes, told = self.finish(ranks)
                    self.assertEqual(codes, [3, 3], told)
                    self.assertTrue(all(word in text and "disk/r" in text for text in told), told)
                    self.assertFalse(os.path.exists(self.path("ran")))
                finally:
                    subprocess.run(["umount", "-l", disk])


class Clocks(ClusterTest):
    def start_pair(self, before, command="sleep 1.5", other_env=None):
        """Two nodes; the second, of which `before` makes another world, joins the first's run."""
        first = self.start_rank(self.step_env(0, 2, 0) | {"ERGOMETER_HOST_ROOT": self.node_root(0)}, "run", "--quiet", "-o", "r", "--",
                                "sh", "-c", f"{command}; while ! test -e {self.path('go')}; do sleep 0.05; done")
        self.wait_for_part("r", "n1")
        env = self.step_env(1, 2, 1) | {"ERGOMETER_HOST_ROOT": self.node_root(1)} | (other_env or {})
        second = self.start_rank(env, "run", "--quiet", "-o", "r", "--", "sh", "-c", command, before=before)
        codes, told = self.finish([second])
        self.assertEqual(codes, [0], told)
        self.write("go", "")
        codes, told = self.finish([first])
        self.assertEqual(codes, [0], told)
        return self.part("r", "n2")

    @unittest.skipUnless(can_unshare("-T", "--monotonic=1000"), "no time namespace can be made here")
    def test_the_clock_of_another_time_namespace_is_measured(self):
        part = self.start_pair(["unshare", "-T", "--monotonic=1000"])
        self.assertEqual(part["clock"]["method"], "exchange")
        self.assertEqual(part["clock"]["reference"], "n1")
        offsets = part["clock"]["offsets"]
        self.assertGreaterEqual(len(offsets), 2, "at the start and at the end")
        for offset in offsets:
            self.assertLessEqual(abs(offset["offset_ns"] + 1000 * 10**9), offset["error_ns"])
        self.assertFalse(os.path.exists(self.path("r/clock.json")), "the secret goes with the run")

    @unittest.skipUnless(can_unshare("-T", "--monotonic=1000"), "no time namespace can be made here")
    def test_regions_of_another_time_namespace_lie_within_the_run(self):
        self.start_pair(["unshare", "-T", "--monotonic=1000"], command=f"{MARK} begin work; sleep 1.5; {MARK} end work")
        done = self.tool("show", "r", "--json", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads(done.stdout)
        ends = {region["node"]: region["t_begin_s"] + region["duration_s"] for region in summary["regions"] if region["node"]}
        self.assertEqual(sorted(ends), ["n1", "n2"])
        # Its own clock is 1000 s ahead.
        for node, end in ends.items():
            self.assertTrue(0 < end <= summary["run"]["duration_s"] + 0.1, (node, end, summary["run"]["duration_s"]))

    @unittest.skipUnless(can_unshare("-n"), "no network namespace can be made here")
    def test_a_node_that_cannot_reach_the_reference_is_aligned_by_the_wall_clocks(self):
        if not can_unshare("-T", "--monotonic=1000"):
            self.skipTest("no time namespace can be made here")
        part = self.start_pair(["unshare", "-n", "-T", "--monotonic=1000"])
        self.assertEqual(part["clock"]["method"], "wall")
        self.assertEqual(len(part["clock"]["offsets"]), 1)
        offset = part["clock"]["offsets"][0]
        self.assertLessEqual(abs(offset["offset_ns"] + 1000 * 10**9), offset["error_ns"])
        self.assertIn("clock-exchange", [warning["code"] for warning in part["warnings"]])

    def test_the_secret_is_for_its_owner_alone(self):
        first = self.start_rank(self.step_env(0, 2, 0) | {"ERGOMETER_HOST_ROOT": self.node_root(0)}, "run", "--quiet", "-o", "r", "--",
                                "sh", "-c", f"while ! test -e {self.path('go')}; do sleep 0.05; done")
        self.wait_for_file("r/clock.json")
        self.assertEqual(os.stat(self.path("r/clock.json")).st_mode & 0o077, 0)
        self.write("go", "")
        self.finish([first])

    def test_a_run_of_one_node_opens_no_port(self):
        first = self.start_rank(self.step_env(0, 1, 0, 2) | {"ERGOMETER_HOST_ROOT": self.node_root(0)}, "run", "--quiet", "-o", "r", "--",
                                "sh", "-c", f"while ! test -e {self.path('go')}; do sleep 0.05; done")
        self.wait_for_file("r/nodes/n1/samples/package.csv.zst")
        time.sleep(0.5)
        self.assertFalse(os.path.exists(self.path("r/clock.json")))
        self.write("go", "")
        self.finish([first])


if __name__ == "__main__":
    unittest.main()
