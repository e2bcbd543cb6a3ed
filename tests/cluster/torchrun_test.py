"""A run started by the real torchrun: all its workers on this host are one node with one sampler."""

from cluster_world import *


@unittest.skipUnless(shutil.which("torchrun"), "there is no torchrun here (Debian: python3-torch)")
class Torchrun(ClusterTest):
    def torchrun(self, workers, *words):
        # PyTorch 1.13 with Python 3.11 fails on its own default of redirecting nothing.
        return subprocess.run(["torchrun", "--standalone", "-r", "1", "-t", "1", f"--nproc_per_node={workers}", "--no_python", *words], cwd=self.dir,
                              env=self.env, capture_output=True, text=True, timeout=120)

    def test_three_workers_one_node_one_sampler(self):
        done = self.torchrun(3, TOOL, "run", "--name", "x", "--", "sh", "-c", f"{MARK} begin work; sleep 1; {MARK} end work; echo rank $RANK")
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(3):
            self.assertIn(f"rank {rank}", done.stdout)
        runs = os.listdir(self.path("runs"))
        self.assertEqual(len(runs), 1, runs)
        self.assertTrue(runs[0].startswith("x-torchrun-"), runs)
        part = self.part(f"runs/{runs[0]}")
        self.assertEqual([(rank["rank"], rank["exit_code"]) for rank in part["ranks"]], [(0, 0), (1, 0), (2, 0)])
        self.assertEqual(part["place"]["launcher"], "torchrun")
        self.assertEqual(sorted(row["rank"] for row in self.table(f"runs/{runs[0]}", "regions.csv")), ["0", "1", "2"])
        seconds = (part["end_ns"] - part["begin_ns"]) / 1e9
        energy = self.summary(f"runs/{runs[0]}")["run"]["energy_j"]
        self.assertAlmostEqual(energy, 100 * seconds, delta=0.1 * energy)

    def test_a_failure_is_torchruns_and_the_runs(self):
        done = self.torchrun(2, TOOL, "run", "--quiet", "-o", "r", "--", "sh", "-c", "sleep 0.5; exit $RANK")
        self.assertNotEqual(done.returncode, 0)
        shown = self.tool("show", "r", "--json", text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)


if __name__ == "__main__":
    unittest.main()
