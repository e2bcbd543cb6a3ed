"""Studies through a real Slurm of two nodes on this host: a job a cell or a block with the constraint of its nodes, collected
later; and srun inside an allocation, over both nodes."""

import sys

from study_world import *

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "slurm"))
import slurm_cluster


class Slurm(StudyTest):
    @classmethod
    def setUpClass(cls):
        if reason := slurm_cluster.why_not():
            raise unittest.SkipTest(reason)
        cls.folder = tempfile.mkdtemp(prefix="ergometer-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = cls.enterClassContext(slurm_cluster.SlurmCluster(cls.folder))

    def setUp(self):
        super().setUp()
        self.env |= self.cluster.env

    def test_a_job_a_cell_is_collected_later(self):
        self.write("t.toml", study_text('kind = ["cpu", "gpu"]\na = [1, 2]', command="sh -c 'echo on $SLURMD_NODENAME {a}; sleep 0.2'",
                                        rest='[runs]\nrepetitions = 2\n[where]\nexecutor = "sbatch"\nconstraint = "{kind}"'))
        done = self.run_study("t.toml")
        self.assertIn("8 given to batch jobs", done.stderr)
        # Nothing is submitted twice while its job waits or runs.
        self.run_study("t.toml")
        self.assertEqual(sum(line["kind"] == "submitted" for line in self.journal()), 4)
        self.cluster.wait_until_empty()
        self.assertIn("8 of 8 runs: 8 valid", self.study("status", "t.toml").stdout)
        self.study("show", "t.toml")
        plan = json.loads(self.read("runs/t/plan.json"))
        table = self.table_json()
        self.assertEqual([run["verdict"] for run in table["runs"]], ["valid"] * 8)
        for run, (cell, _) in enumerate(plan["runs"]):
            node = "n1" if plan["cells"][cell][0] == 0 else "n2"
            self.assertIn(f"on {node} ", self.read(f"runs/t/runs/{run:04}.log"))
        self.assertIn("8 of 8 runs", self.run_study("t.toml").stderr)

    def test_a_job_that_was_cancelled_is_submitted_again(self):
        self.write("t.toml", study_text("a = [1, 2]", command="sh -c 'echo {a}; test -e %s/go || sleep 60'" % self.dir,
                                        rest='[where]\nexecutor = "sbatch"\njob = "block"'))
        self.run_study("t.toml")
        self.assertTrue(wait_until(self.started, 60))
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_until_empty()
        self.assertEqual(self.ended(), [])
        self.write("go", "")
        self.run_study("t.toml")
        self.cluster.wait_until_empty()
        self.assertIn("2 of 2 runs: 2 valid", self.study("status", "t.toml").stdout)

    def test_srun_over_two_nodes_in_an_allocation(self):
        self.write("t.toml", study_text("nodes = [1, 2]", command="sh -c 'echo on $SLURMD_NODENAME; sleep 0.3'",
                                        rest='[where]\nexecutor = "srun"\n[runs]\norder = "as-listed"'))
        done = subprocess.run(["salloc", "-N", "2", TOOL, "study", "run", "t.toml"], env=os.environ | self.env, cwd=self.dir,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.path("runs/t/runs/0001"))), ["n1", "n2"])
        one, two = (run["metrics"]["energy_j"]["value"] / run["metrics"]["duration_s"]["value"] for run in self.table_json()["runs"])
        # 100 W a node.
        self.assertAlmostEqual(one, 100, delta=25)
        self.assertGreater(two, 150)


if __name__ == "__main__":
    unittest.main()
