"""Studies through the real mpirun: so many ranks, measured as one run; and one measuring rank a node."""

from study_world import *


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun here (Debian: openmpi-bin)")
class Mpi(StudyTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() == 0:
            self.env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.where = '[where]\nexecutor = "mpirun"\noptions = ["--oversubscribe", "--bind-to", "none"]\n[runs]\norder = "as-listed"'

    def test_ranks(self):
        self.write("t.toml", study_text("ranks = [1, 3]", command="sh -c 'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'", rest=self.where))
        self.run_study("t.toml", timeout=200)
        for run, ranks in ((0, 1), (1, 3)):
            lines = self.read(f"runs/t/runs/{run:04}.log").splitlines()
            self.assertEqual(sorted(line for line in lines if line.startswith("rank ")), [f"rank {i} of {ranks}" for i in range(ranks)])
        self.assertTrue(all("energy_j" in line["metrics"] for line in self.ended()))

    def test_of_the_ranks_on_a_node_the_first_measures(self):
        done = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", TOOL, "study", "rank", "-o", self.path("r"), "--", "sh", "-c",
                               "echo run=$ERGOMETER_RUN"], env=self.env, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(os.listdir(self.path("r"))), 1)
        self.assertEqual(sorted(bool(line[4:]) for line in done.stdout.splitlines() if line.startswith("run=")), [False, True])

    def test_an_mpirun_that_fails_is_a_failed_run(self):
        self.write("t.toml", study_text("ranks = [1]", command="false", rest=self.where))
        done = self.study("run", "t.toml", timeout=200)
        self.assertEqual(done.returncode, 3)
        self.assertIn("failed in every one", done.stderr)


if __name__ == "__main__":
    unittest.main()
