"""`ergometer job` on a real Slurm with its accounting: what an ordinary user reads of their jobs, and not of others'. This machine
has no energy plugin, so Slurm's own figure is put into its data base, from where the real sacct prints it."""

import json
import subprocess

from slurm_world import *


class Job(SlurmTest):
    options = {"accounting": True, "private": True}

    def report(self, job, user=None, code=0):
        done = self.cluster.run_as(user or self.user, TOOL, "job", "--json", "--records", f"{self.folder}/records", job)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def wait_for_state(self, job, *states, seconds=60):
        """Until the accounting says so: it hears of a job a moment after its end."""
        lines = lambda: self.cluster.run("sacct", "--noheader", "--parsable2", "--jobs", job, "--format=State").stdout.splitlines()
        # Of the job and of all its steps: "CANCELLED by 1000" is CANCELLED.
        self.assertTrue(wait_until(lambda: lines() and all(line.split()[0] in states for line in lines()), seconds), f"{job}: {lines()}")

    def measured(self, job):
        """Until the samplers of a job have put their parts away."""
        folder = f"{self.home}/ergometer-jobs/{job}"
        self.assertTrue(wait_until(lambda: os.path.isdir(folder) and any(os.path.isdir(f"{folder}/{name}") for name in os.listdir(folder))))
        return folder

    def set_slurms_figure(self, job, joules):
        """The controller tells the data base of a job's end more than once: until its last word."""
        printed = lambda: self.cluster.run("sacct", "--noheader", "--parsable2", "--allocations", "--jobs", job, "--format=ConsumedEnergyRaw").stdout.strip()
        for _ in range(10):
            self.write_figure(job, joules)
            time.sleep(2)
            if printed() == str(joules):
                return
        self.fail(f"sacct prints {printed()}")

    def write_figure(self, job, joules):
        self.cluster.sql(f"UPDATE test_job_table SET tres_alloc = CONCAT(tres_alloc, ',3={joules}') WHERE id_job = {job}")
        self.cluster.sql(f"UPDATE test_step_table SET consumed_energy = {joules} WHERE id_step = 0 AND job_db_inx IN "
                         f"(SELECT job_db_inx FROM test_job_table WHERE id_job = {job})")

    def last_job(self):
        return max(os.listdir(f"{self.home}/ergometer-jobs"), key=int)

    def test_F92_F94_three_nodes_beside_slurms_own_figure(self):
        self.ok(self.as_user("srun", "--ergometer", "-N3", "-n6", "sleep", "3"))
        job = self.last_job()
        self.wait_for_state(job, "COMPLETED")
        self.set_slurms_figure(job, 90_000)
        report = self.report(job)
        self.assertEqual([node["name"] for node in report["nodes"]], ["n1", "n2", "n3"])
        self.assertEqual(report["missing_nodes"], [])
        self.assertAlmostEqual(report["energy_j"], sum(node["energy_j"] for node in report["nodes"]), places=6)
        for node in report["nodes"]:
            package, = (d for d in node["domains"] if d["in_total"] and d["energy_j"] is not None)
            self.assertAlmostEqual(package["mean_power_w"], WATTS[node["name"]], delta=0.2 * WATTS[node["name"]])
            self.assertAlmostEqual(node["energy_j"], package["energy_j"], places=6)
        step, = report["steps"]
        self.assertEqual((step["step"], step["nodes"]), ("0", ["n1", "n2", "n3"]))
        self.assertAlmostEqual(step["energy_j"], report["energy_j"], places=6)
        self.assertEqual(report["reported_by_slurm"]["consumed_j"], 90_000)
        self.assertAlmostEqual(report["reported_by_slurm"]["difference"], 90_000 / report["energy_j"] - 1, places=6)
        text = self.ok(self.as_user(TOOL, "job", job)).stdout
        self.assertIn("reported by Slurm: 90.00 kJ", text)
        self.assertIn("known to be too high", text)
        # Somebody else gets what Slurm shows them of it: nothing.
        self.assertRegex(self.report(job, slurm_cluster.OTHER, code=2), "not yours|knows no job .* of yours")

    def test_a_job_that_never_was(self):
        self.assertIn("Slurm knows no job 4000 of yours", self.report("4000", code=2))

    def test_a_job_without_measurements(self):
        job = self.submit("-N1", "--wrap", "true")
        self.wait_for_state(job, "COMPLETED")
        report = self.report(job)
        self.assertIsNone(report["energy_j"])
        self.assertIn("no-energy", [warning["code"] for warning in report["warnings"]])

    def test_a_running_job_then_cancelled(self):
        job = self.submit("--ergometer", "-wn1", "--wrap", "srun sleep 300")
        self.measured(job)
        self.assertTrue(wait_until(lambda: (self.report(job)["energy_j"] or 0) > 100))
        # The accounting hears of a job's begin a moment later.
        self.assertTrue(wait_until(lambda: self.report(job)["state"] == "RUNNING"))
        self.as_user("scancel", job)
        self.wait_for_state(job, "CANCELLED")
        report = self.report(job)
        self.assertEqual(report["state"], "CANCELLED")
        # The script's sampler saw the whole of the node, the step's a part of it: the node counts once.
        node, = report["nodes"]
        self.assertAlmostEqual(node["mean_power_w"], WATTS["n1"], delta=0.2 * WATTS["n1"])
        self.assertLessEqual(node["measured_s"], report["elapsed_s"] + 3)

    def test_a_job_out_of_time(self):
        # Slurm looks at limits twice a minute, and gives a job half a minute more to end.
        job = self.submit("--ergometer", "-wn3", "--time=0:01", "--wrap", "srun sleep 300")
        self.measured(job)
        # The script may end of its killed step before Slurm writes TIMEOUT: then the job is one that failed.
        self.wait_for_state(job, "TIMEOUT", "FAILED", "CANCELLED", seconds=150)
        node, = self.report(job)["nodes"]
        self.assertAlmostEqual(node["mean_power_w"], WATTS["n3"], delta=0.2 * WATTS["n3"])

    def test_an_array(self):
        job = self.submit("--ergometer", "--array=0-2", "-N1", "--wrap", "sleep 1")
        for task in range(3):
            self.wait_for_state(f"{job}_{task}", "COMPLETED")
        reports = self.report(job)
        self.assertEqual(sorted(report["job"] for report in reports), [f"{job}_{task}" for task in range(3)])
        self.assertTrue(all(report["energy_j"] > 0 for report in reports), reports)
        self.assertEqual(self.report(f"{job}_1")["job"], f"{job}_1")

    def test_a_requeued_job_is_both_its_lives(self):
        job = self.submit("--ergometer", "--requeue", "-wn2", "--wrap", f"test -e {self.home}/second-x && exec sleep 1; touch {self.home}/second-x; sleep 300")
        self.assertTrue(wait_until(lambda: os.path.exists(f"{self.home}/second-x")))
        time.sleep(1)
        self.ok(self.cluster.run("scontrol", "requeue", job))
        # A requeued job waits two minutes before it may begin again, unless told otherwise.
        self.assertTrue(wait_until(lambda: self.state(job) == "PENDING"))
        # Nor may it before everything of its first life has ended on the node.
        self.assertTrue(wait_until(lambda: parts_are_complete(f"{self.home}/ergometer-jobs/{job}/batch")))
        self.assertTrue(wait_until(self.cluster.is_up))
        # Slurm counts in whole seconds: a credential of the second in which the first life's was revoked is revoked with it.
        time.sleep(1.1)
        self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.wait_for_state(job, "COMPLETED", seconds=90)
        report = self.report(job)
        self.assertEqual(report["lives"], 2)
        self.assertEqual(sorted(step["step"] for step in report["steps"]), ["batch", "batch-restart1"])
        self.assertGreater(report["energy_j"], WATTS["n2"] * 1.0)

    def test_a_month(self):
        job = self.submit("--ergometer", "-wn1", "--wrap", "sleep 1")
        self.wait_for_state(job, "COMPLETED")
        # The accounting lists a job a moment after it tells of it by number.
        month = lambda: json.loads(self.ok(self.as_user(TOOL, "job", "--summary", "--json")).stdout)
        self.assertTrue(wait_until(lambda: job in [one["job"] for one in month()["jobs"]]))
        done = month()
        self.assertIn(job, [one["job"] for one in done["jobs"]])
        self.assertEqual(list(done["users"]), [self.user])
        self.assertGreater(done["all"]["energy_j"], 0)
        self.assertIn(self.user, self.ok(self.as_user(TOOL, "job", "--summary")).stdout)
        other = json.loads(self.ok(self.cluster.run_as(slurm_cluster.OTHER, TOOL, "job", "--summary", "--json", "--user", self.user)).stdout)
        self.assertEqual(other["jobs"], [])


if __name__ == "__main__":
    unittest.main()
