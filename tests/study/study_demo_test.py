"""The built-in study `demo` with the real workloads, one network of it: what its copies and ranks did is counted once and whole."""

from study_world import *

WORKLOAD = os.environ.get("ERGOMETER_WORKLOAD", "")
SAMPLES = 40 * 64  # of one copy's inference: the study's steps and the workload's batch


@unittest.skipUnless(WORKLOAD, "the workloads are not built (LibTorch)")
class Demo(CliTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{os.path.dirname(WORKLOAD)}:{self.env['PATH']}"
        subprocess.run([WORKLOAD, "data", "make", "load_lstm", self.path("data/load_lstm"), "--count", "1"], check=True, capture_output=True)

    def test_copies_of_an_inference_are_counted_together(self):
        done = self.tool("study", "run", "demo", "--set", f"data={self.path('data')}", "--levels", "workload=load_lstm", "--levels", "mode=infer",
                         "-o", "s", text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        table = json.loads(self.read("s/table.json"))
        ranks_at, = (i for i, factor in enumerate(table["factors"]) if factor["name"] == "ranks")
        seen = {}
        for run in table["runs"]:
            self.assertEqual(run["verdict"], "valid", run["reasons"])
            summary = json.loads(self.tool("show", "--json", f"s/{run['folder']}").stdout)
            region, = (r for r in summary["regions"] if r["path"] == "infer" and r["rank"] is None)
            ranks = int(table["factors"][ranks_at]["levels"][table["cells"][run["cell"]]["levels"][ranks_at]])
            seen[ranks] = region["metrics"]["samples"]
            self.assertAlmostEqual(run["metrics"]["samples_per_s"]["value"] * region["duration_s"], region["metrics"]["samples"], delta=1)
        self.assertEqual(seen, {1: SAMPLES, 2: 2 * SAMPLES})


if __name__ == "__main__":
    unittest.main()
