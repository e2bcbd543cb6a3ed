"""A run started by the real mpirun: all its ranks on this host are one node with one sampler."""

from cluster_world import *


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun here (Debian: openmpi-bin)")
class Mpi(ClusterTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() == 0:
            self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def mpirun(self, ranks, *words):
        return subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *words], cwd=self.dir,
                              env=self.env, capture_output=True, text=True, timeout=120)

    def test_four_ranks_one_node_one_sampler(self):
        done = self.mpirun(4, TOOL, "run", "--name", "x", "--", "sh", "-c",
                           f"{MARK} begin work; sleep 1; {MARK} end work; echo rank $OMPI_COMM_WORLD_RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split("\n")[:-1]), [f"rank {i}" for i in range(4)])
        runs = os.listdir(self.path("runs"))
        self.assertEqual(len(runs), 1, runs)
        self.assertTrue(runs[0].startswith("x-ompi-"), runs)
        part = self.part(f"runs/{runs[0]}")
        self.assertEqual([rank["exit_code"] for rank in part["ranks"]], [0] * 4)
        self.assertEqual(part["place"]["launcher"], "openmpi")
        self.assertEqual(len(self.table(f"runs/{runs[0]}", "regions.csv")), 4)
        self.assertEqual(done.stderr.count(f"run: runs/{runs[0]}"), 1, "one rank tells the summary\n" + done.stderr)
        seconds = (part["end_ns"] - part["begin_ns"]) / 1e9
        energy = self.summary(f"runs/{runs[0]}")["run"]["energy_j"]
        self.assertAlmostEqual(energy, 100 * seconds, delta=0.1 * energy)

    def test_a_failure_is_mpiruns_and_the_runs(self):
        done = self.mpirun(3, TOOL, "run", "--quiet", "-o", "r", "--", "sh", "-c", "sleep 0.5; exit $OMPI_COMM_WORLD_RANK")
        self.assertNotEqual(done.returncode, 0)
        # mpirun ends the others as soon as one fails; what it left is readable.
        shown = self.tool("show", "r", "--json", text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_different_programs_of_one_launch_are_one_run(self):
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "1", TOOL, "run", "--quiet", "--", "sh", "-c", "sleep 0.5", ":", "-n",
                               "2", TOOL, "run", "--quiet", "--", "sleep", "0.7"], cwd=self.dir, env=self.env, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = os.listdir(self.path("runs"))
        self.assertEqual(len(runs), 1, runs)
        self.assertEqual(len(self.part(f"runs/{runs[0]}")["ranks"]), 3)

    def test_around_mpirun_the_run_is_an_ordinary_one(self):
        done = self.tool("run", "--quiet", "-o", "r", "--", "mpirun", "--oversubscribe", "-n", "2", "sh", "-c", "echo $ERGOMETER_RUN", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(done.stdout.split()), {self.path("r")})
        self.assertNotIn("parts", self.manifest("r"))


if __name__ == "__main__":
    unittest.main()
