"""A data-parallel training of a reference workload under a real Slurm: three nodes, six ranks, one report."""

import json

from slurm_world import *

WORKLOAD = os.environ.get("ERGOMETER_WORKLOAD", "")


class Training(SlurmTest):
    @classmethod
    def setUpClass(cls):
        if not WORKLOAD:
            raise unittest.SkipTest("the reference workloads are not built")
        super().setUpClass()

    def test_three_nodes_and_six_ranks_are_one_report(self):
        port, = slurm_cluster.free_ports(1)
        # The names of the nodes are no addresses here: all of them are this host.
        rendezvous = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        done = self.ok(self.as_user("srun", "--ergometer", "-N3", "-n6", WORKLOAD, "train", "load_lstm", "--data", "synthetic", "--epochs", "2",
                                    "--steps", "12", "--no-validation", env=rendezvous, timeout=240))
        self.assertIn("epoch 2", done.stdout.lower())
        job, = os.listdir(f"{self.home}/ergometer-jobs")
        run = f"{self.home}/ergometer-jobs/{job}/0"
        self.assertTrue(wait_until(lambda: parts_are_complete(run)))
        summary = json.loads(self.ok(self.as_user(TOOL, "show", "--json", run)).stdout)
        self.assertTrue(summary["run"]["valid"], summary["warnings"])
        self.assertEqual([node["name"] for node in summary["nodes"]], ["n1", "n2", "n3"])
        parts = [sum(d["energy_j"] for d in node["domains"] if d["in_total"] and d["measured"] and d["energy_j"] is not None) for node in summary["nodes"]]
        self.assertAlmostEqual(summary["run"]["energy_j"], sum(parts), places=6)
        for node, energy in zip(summary["nodes"], parts):
            self.assertAlmostEqual(energy / summary["run"]["duration_s"], WATTS[node["name"]], delta=0.25 * WATTS[node["name"]])
        ranks = set()
        for node in ("n1", "n2", "n3"):
            with open(f"{run}/nodes/{node}/part.json") as file:
                part = json.load(file)
            self.assertEqual((part["state"], [rank["exit_code"] for rank in part["ranks"]]), ("complete", [0, 0]))
            ranks |= {rank["rank"] for rank in part["ranks"]}
        self.assertEqual(ranks, set(range(6)))
        epochs = [region for region in summary["regions"] if region["name"] == "epoch"]
        self.assertTrue(set(range(6)) <= {region["rank"] for region in epochs})
        page = f"{self.home}/page.html"
        self.ok(self.as_user(TOOL, "report", run, "-o", page))
        with open(page) as file:
            text = file.read()
        self.assertTrue(all(f'"{node}"' in text for node in ("n1", "n2", "n3")))
        report = json.loads(self.ok(self.as_user(TOOL, "job", "--json", job)).stdout)
        self.assertAlmostEqual(report["energy_j"], summary["run"]["energy_j"], places=6)


if __name__ == "__main__":
    unittest.main()
