"""ergometer merge: runs of nodes that share no storage become one."""

import show_test
from harness import *
from show_test import strict_json

WALL = 1_700_000_000


class MergeTest(show_test.RunsTest):
    def node(self, run, node, begin=100, watts=100, wall=0.0, boot=None, error_ms=1, length=10, ranks=(), **manifest):
        """A run of one node: a GPU at `watts`, on its own clock from `begin` s on, which was second WALL + wall of the day."""
        ns = lambda s: round(s * 10**9)
        clocks = [{"mono_ns": ns(begin + s), "wall_ns": ns(WALL) + ns(wall + s), "error_ns": error_ms * 10**6}
                  for s in (0, length)]
        manifest = {"schema": "ergometer.run/1", "name": "train", "command": ["train"], "state": "complete", "nodes": [node],
                    "begin_ns": ns(begin), "end_ns": ns(begin + length), "exit_code": 0, "clocks": clocks, **manifest}
        self.write(f"{run}/run.json", json.dumps(manifest))
        channel = {"column": "power_w", "quantity": "power", "unit": "W", "behaviour": "gauge", "domain": "gpu/0", "device": f"GPU-{node}",
                   "scope": "gpu", "method": "samples", "window_ns": ns(0.1), "gain_tolerance": 0}
        self.write(f"{run}/nodes/{node}/node.json", json.dumps(
            {"schema": "ergometer.node/1", "name": node, "hostname": node, "boot_id": boot or f"boot-of-{run}",
             "sensors": [{"name": "gpu0", "interface": "x", "interval_ns": ns(0.1), "own_time": True, "channels": [channel]}]}))
        power = "".join(f"{ns(begin - 1 + i / 10)},{watts}\n" for i in range(10 * length + 21))
        self.write(f"{run}/nodes/{node}/samples/gpu0.csv", "t_ns,power_w\n" + power)
        rows = ["t_begin_ns,t_end_ns,pid,tid,rank,path,attributes"]
        rows += [f"{ns(begin + 2)},{ns(begin + 6)},1,1,{rank},train/epoch[0],samples=10" for rank in ranks]
        self.write(f"{run}/nodes/{node}/regions.csv", "\n".join(rows) + "\n")

    def summary(self, run):
        return strict_json(self.good("show", "--json", run))

    def warned(self, summary):
        return sorted({w["code"] for w in summary["warnings"]})

    def three(self):
        self.node("a", "n1", begin=100, watts=100, ranks=(0, 1))
        self.node("b", "n2", begin=7200, watts=200, wall=0.002, ranks=(2, 3))
        self.node("c", "n3", begin=5, watts=300, wall=-0.003, ranks=(4, 5))

    def test_three_nodes_become_one_run(self):
        self.three()
        before = [self.checksums(run) for run in "abc"]
        done = self.tool("merge", "a", "b", "c", "-o", "all", text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("nodes: 3", done.stdout)
        self.assertIn("look at it: ergometer show", done.stdout)
        s = self.summary("all")
        self.assertEqual(self.read("all/summary.json"), self.good("show", "--json", "all"))
        self.assertEqual([n["name"] for n in s["nodes"]], ["n1", "n2", "n3"])
        total = 0.0
        for node in s["nodes"]:
            total += node["energy_j"]
        self.assertEqual(s["run"]["energy_j"], total)
        self.assertAlmostEqual(total, 6000, places=3)
        self.assertTrue(s["run"]["valid"])
        self.assertEqual(s["run"]["exit_code"], 0)
        # The same energies as alone.
        for run, node in zip("abc", s["nodes"]):
            self.assertEqual(self.summary(run)["run"]["energy_j"], node["energy_j"])
        # The epoch that six ranks had at the same time stands there once, and each rank's own with its node.
        epochs = [r for r in s["regions"] if r["path"] == "train/epoch[0]"]
        whole = [r for r in epochs if r["rank"] is None]
        self.assertEqual(len(whole), 1)
        self.assertEqual((whole[0]["ranks"], whole[0]["node"]), (6, None))
        self.assertAlmostEqual(whole[0]["energy_j"], 600 * 4.005, places=2)
        self.assertEqual(whole[0]["metrics"]["samples"], 60)
        self.assertEqual([(r["rank"], r["node"]) for r in epochs if r["rank"] is not None],
                         [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2"), (4, "n3"), (5, "n3")])
        # Nothing of what was merged has changed.
        self.assertEqual([self.checksums(run) for run in "abc"], before)

    def test_text_report_and_exports_tell_all_nodes(self):
        self.three()
        self.good("merge", "a", "b", "c", "-o", "all")
        text = self.good("show", "all", "--width", "120")
        self.assertRegex(text, r"nodes +3")
        for row in (r"n1 .* 1\.000 kJ", r"n2 .* 2\.000 kJ", r"n3 .* 3\.000 kJ"):
            self.assertRegex(text, row)
        self.assertEqual(text.count("train/epoch[0]"), 1, text)
        ranks = self.good("show", "all", "--by", "rank", "--width", "120")
        for rank in range(6):
            self.assertIn(f"train/epoch[0] rank {rank} on n{rank // 2 + 1}", ranks)
        rows = list(csv.DictReader(io.StringIO(self.good("export", "all", "--format", "csv"))))
        self.assertEqual([(r["node"], r["rank"]) for r in rows if r["level"] == "rank"],
                         [("n1", "0"), ("n1", "1"), ("n2", "2"), ("n2", "3"), ("n3", "4"), ("n3", "5")])
        self.good("report", "all", "-o", "all.html")
        page = self.read("all.html")
        for word in ("rank 0", "rank 5", "n3"):
            self.assertIn(word, page)
        # Samples leave in one time.
        samples = list(csv.DictReader(io.StringIO(self.good("export", "all", "--format", "csv", "--samples"))))
        first = {node: min(int(r["t_ns"]) for r in samples if r["node"] == node) for node in ("n1", "n2", "n3")}
        self.assertEqual(first["n2"] - first["n1"], 2_000_000)
        self.assertEqual(first["n3"] - first["n1"], -3_000_000)

    def test_one_machine_given_twice_counts_once(self):
        self.node("a", "n1", boot="same")
        self.node("b", "other-name", begin=102, wall=2, length=5, boot="same")
        done = self.tool("merge", "a", "a", "b", "-o", "all", text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("are one machine, measured at the same time", done.stderr)
        s = self.summary("all")
        self.assertEqual([n["name"] for n in s["nodes"]], ["n1"])
        self.assertAlmostEqual(s["run"]["energy_j"], 1000, places=3)
        self.assertFalse(s["run"]["partial"])

    def test_namesakes_keep_their_own_folders(self):
        self.node("a", "node", boot="11111111-x")
        self.node("b", "node", boot="22222222-y", watts=50)
        self.good("merge", "a", "b", "-o", "all")
        s = self.summary("all")
        self.assertEqual([n["name"] for n in s["nodes"]], ["node", "node-22222222"])
        self.assertAlmostEqual(s["run"]["energy_j"], 1500, places=3)

    def test_clocks_hours_apart(self):
        self.node("a", "n1", ranks=(0,))
        self.node("b", "n2", wall=3 * 3600, ranks=(1,))
        done = self.tool("merge", "a", "b", "-o", "all", text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("did not run at the same time", done.stderr)
        s = self.summary("all")
        self.assertIn("clocks-apart", self.warned(s))
        self.assertAlmostEqual(s["run"]["energy_j"], 2000, places=3)

    def test_a_part_that_was_cut_and_one_that_is_missing(self):
        self.node("a", "n1")
        self.node("b", "n2", state="running", end_ns=None, exit_code=None)
        done = self.tool("merge", "a", "b", "-o", "all", text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("of node n2 has not ended, or was cut", done.stderr)
        self.assertFalse(self.summary("all")["run"]["valid"])
        # A launch over three nodes, of which the folders of two came.
        for run, node in (("d", "n1"), ("e", "n2")):
            self.node(run, node, parts={"run_key": "slurm-1.0", "launcher": "slurm"}, nodes=["n1", "n2", "n3"])
        self.good("merge", "d", "e", "-o", "two")
        s = self.summary("two")
        self.assertEqual(s["run"]["missing_nodes"], ["n3"])
        self.assertTrue(s["run"]["partial"])
        self.assertIn("node-missing", self.warned(s))
        self.assertIn("missing: n3", self.good("show", "two"))

    def test_merged_runs_can_be_merged_again(self):
        self.three()
        self.good("merge", "a", "b", "-o", "ab")
        self.good("merge", "ab", "c", "-o", "abc")
        self.assertAlmostEqual(self.summary("abc")["run"]["energy_j"], 6000, places=3)
        self.assertEqual(len(self.summary("abc")["nodes"]), 3)

    def test_bad_input(self):
        self.node("a", "n1")
        self.refused("merge", "a", "nowhere", "-o", "out", says=["nowhere is no run directory", "name folders"])
        self.assertFalse(os.path.exists(self.path("out")))
        self.write("full/notes.txt", "mine")
        self.refused("merge", "a", "-o", "full", says=["full exists and is not empty", "choose another name with -o"])
        self.assertEqual(self.read("full/notes.txt"), "mine")
        self.refused("merge", "a", "-o", "a", says=["a is both merged and to be made"])
        self.write("bare/run.json", json.dumps({"schema": "ergometer.run/1"}))
        self.refused("merge", "a", "bare", "-o", "out", says=["bare has no node"])
        self.write("broken/run.json", "{")
        self.refused("merge", "broken", "-o", "out", says=["broken/run.json is damaged or cut"])


if __name__ == "__main__":
    unittest.main()
