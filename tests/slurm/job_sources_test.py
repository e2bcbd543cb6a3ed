"""`ergometer job` on runs written by hand, records of the daemon, and a sacct and scontrol that say what a test wants: what is
known is shown, whoever knows it, and nothing is counted twice."""

import pwd

from harness import *
from job_world import *

COLUMNS = "JobIDRaw|JobID|User|Account|JobName|Partition|Cluster|State|NodeList|Start|End|ElapsedRaw|AllocTRES|ConsumedEnergyRaw|NTasks|ExitCode"
ME = pwd.getpwuid(os.geteuid()).pw_name
T = 1_700_000_000


def job_line(number, nodes="n1", begin=T, end=T + 100, energy="", state="COMPLETED", user=ME, shown=None, tres="cpu=4,mem=7500M,node=1"):
    return (f"{number}|{shown or number}|{user}|physics|train|main|test|{state}|{nodes}|{begin}|{end or 'Unknown'}|{(end or T + 100) - begin}|"
            f"{tres}|{energy}||0:0")


def step_line(number, step, nodes="n1", begin=T, end=T + 100, energy=""):
    return f"{number}.{step}|{number}.{step}||physics|python3|||COMPLETED|{nodes}|{begin}|{end}|{end - begin}||{energy}|2|0:0"


class Job(CliTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{self.dir}/bin:{self.env['PATH']}"
        self.slurm()

    def slurm(self, *lines, scontrol="slurm_load_jobs error: Invalid job id specified"):
        """What sacct prints, and scontrol for a job that sacct does not know."""
        self.write("sacct.txt", "\n".join((COLUMNS,) + lines) + "\n")
        self.write("bin/sacct", f'#!/bin/sh\nprintf "%s " "$@" > {self.dir}/asked\nexec cat {self.dir}/sacct.txt\n', 0o755)
        self.write("nodes.txt", "")
        self.write("bin/scontrol", f"#!/bin/sh\ncase \"$*\" in *'show node'*) exec cat {self.dir}/nodes.txt;; esac\necho '{scontrol}' >&2\nexit 1\n", 0o755)

    def index(self, job, step, run, cluster="test"):
        folder = self.path(f".local/share/ergometer/jobs/{cluster}/{job}")
        os.makedirs(folder, exist_ok=True)
        os.symlink(run, f"{folder}/{step}")

    def run_of(self, job, step, begin, end, nodes, **options):
        write_run(self.path(f"runs/{job}-{step}"), begin, end, nodes, **options)
        self.index(job, step, self.path(f"runs/{job}-{step}"))

    def job(self, *words, code=0):
        done = self.tool("job", "--records", self.path("records"), *words, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def report(self, *words):
        return json.loads(self.job("--json", *words).stdout)

    def codes(self, report):
        return [warning["code"] for warning in report["warnings"]]

    def test_F94_slurms_figure_is_a_line_of_its_own(self):
        for number, said in ((1, "300000"), (2, ""), (3, "0")):
            with self.subTest(said=said):
                self.slurm(job_line(number, energy=said), step_line(number, 0))
                self.run_of(number, "0", T, T + 100, {"n1": {"package0": 900, "dram0": 100}})
                report = self.report(str(number))
                self.assertAlmostEqual(report["energy_j"], 100_000, delta=1)
                self.assertEqual(report["reported_by_slurm"]["consumed_j"], 300_000 if number == 1 else None)
                text = self.job(str(number)).stdout
                if number == 1:
                    self.assertAlmostEqual(report["reported_by_slurm"]["difference"], 2, places=4)
                    self.assertIn("reported by Slurm: 300.0 kJ", text)
                    self.assertIn("+200 %", text)
                    self.assertIn("known to be too high", text)
                else:
                    self.assertIn("reported by Slurm: not available", text)
                    self.assertNotIn("0 J", text.split("reported by Slurm")[1])

    def test_F97_a_shared_node_is_not_booked_as_a_whole(self):
        nodes = "".join(f"NodeName=n{i} Arch=x86_64 CPUAlloc=24 CPUTot=48 State=MIXED\n" for i in (1, 2))
        for number, names, cpus, energy in ((1, "n1", 24, 1000), (2, "n[1-2]", 24, 2000)):
            self.slurm(job_line(number, nodes=names, tres=f"cpu={cpus},mem=1G,node=1"))
            self.write("nodes.txt", nodes)
            self.run_of(number, "0", T, T + 100, {f"n{i + 1}": {"package0": 10} for i in range(energy // 1000)})
            report = self.report(str(number))
            self.assertAlmostEqual(report["energy_j"], energy, delta=0.1)  # the nodes' figure stays
            self.assertAlmostEqual(report["shared"]["estimate_j"], 500, delta=0.1)
            self.assertEqual((report["shared"]["cpus"], report["shared"]["node_cpus"]), (cpus, 48 * energy // 1000))
            text = " ".join(self.job(str(number)).stdout.split())
            self.assertIn(f"the nodes were shared: the job had {cpus} of their {48 * energy // 1000} CPUs", text)
            self.assertIn("~500.0 J, an estimate", text)
        # A job that has its nodes for itself, and one of whose nodes nothing is known.
        self.slurm(job_line(3, nodes="n1", tres="cpu=48,node=1"))
        self.write("nodes.txt", nodes)
        self.run_of(3, "0", T, T + 100, {"n1": {"package0": 10}})
        self.assertIsNone(self.report("3")["shared"])
        self.slurm(job_line(1, nodes="n1", tres="cpu=24,node=1"))
        self.assertIsNone(self.report("1")["shared"])

    def test_F87_memory_of_the_job(self):
        self.slurm(job_line(1, tres="cpu=4,mem=7500M,node=1"))
        self.run_of(1, "0", T, T + 100, {"n1": {"package0": 100}})
        self.assertEqual(self.report("1")["memory_bytes"], 7864320000)
        # Where Slurm tells none, the control groups' limit stands in, and one warning says so.
        self.slurm(job_line(2, nodes="n[1-2]", tres="cpu=4,node=2"))
        self.run_of(2, "0", T, T + 100, {"n1": {"package0": 100}, "n2": {"package0": 100}})
        self.assertIsNone(self.report("2")["memory_bytes"])
        for node in ("n1", "n2"):
            self.write(f"runs/2-0/nodes/{node}/node.json", json.dumps({
                "schema": "ergometer.node/1", "name": node, "hostname": node, "boot_id": "b", "kernel": "", "cpu": {}, "memory_bytes": 2**34,
                "memory_limit_bytes": 2**30, "gpus": [], "components": [], "versions": {}, "sensors": [], "absences": []}))
        report = self.report("2")
        self.assertEqual(report["memory_bytes"], 2**31)
        self.assertEqual(self.codes(report).count("memory-by-cgroup"), 1)

    def test_steps_and_the_batch_script_overlap(self):
        self.slurm(job_line(1, nodes="n[1-2]"), step_line(1, "batch"), step_line(1, "0", "n[1-2]", T + 20, T + 60))
        self.run_of(1, "batch", T, T + 100, {"n1": {"package0": 100}})
        self.run_of(1, "0", T + 20, T + 60, {"n1": {"package0": 100}, "n2": {"package0": 300}})
        report = self.report("1")
        self.assertAlmostEqual(report["energy_j"], 10_000 + 12_000, delta=1)
        self.assertEqual([round(step["energy_j"]) for step in report["steps"]], [10_000, 16_000])
        self.assertIn("partly-measured", self.codes(report))

    def test_two_steps_that_overlap_in_part(self):
        for number, parts in ((1, False), (2, True)):
            with self.subTest(parts=parts):
                self.slurm(job_line(number), step_line(number, 0), step_line(number, 1))
                self.run_of(number, "0", T, T + 60, {"n1": {"package0": 100}}, parts=parts)
                self.run_of(number, "1", T + 30, T + 100, {"n1": {"package0": 100}}, parts=parts)
                report = self.report(str(number))
                self.assertAlmostEqual(report["energy_j"], 10_000, delta=1)
                self.assertNotIn("partly-measured", self.codes(report))

    def test_the_daemons_record_fills_what_no_run_measured(self):
        self.slurm(job_line(1, nodes="n[1-2]"))
        write_record(self.path("records"), 1, "n1", T, T + 100, {"package/0": ("package", 20_000)})
        write_record(self.path("records"), 1, "n2", T, T + 100, {"package/0": ("package", 30_000)}, others=["7"])
        self.run_of(1, "0", T + 50, T + 100, {"n1": {"package0": 200, "gpu0": 500}})
        report = self.report("1")
        self.assertAlmostEqual(report["energy_j"], 20_000 + 25_000 + 30_000, delta=1)
        self.assertEqual([(d["domain"], d["source"]) for d in report["nodes"][0]["domains"]], [("gpu/0", "run"), ("package/0", "daemon")])
        self.assertIn("node-shared", self.codes(report))

    def test_a_missing_node_is_named(self):
        self.slurm(job_line(1, nodes="n[1-3]"))
        self.run_of(1, "0", T, T + 100, {"n1": {"package0": 100}, "n3": {"package0": 100}})
        report = self.report("1")
        self.assertEqual(report["missing_nodes"], ["n2"])
        self.assertIn("incomplete", self.codes(report))
        self.assertIn("incomplete", self.job("1").stdout)

    def test_a_running_job_is_shown_up_to_now(self):
        now = int(time.time())
        self.slurm(job_line(1, begin=now - 200, end=None, state="RUNNING"))
        self.run_of(1, "0", now - 200, now, {"n1": {"package0": 100}}, state="running")
        report = self.report("1")
        self.assertAlmostEqual(report["energy_j"], 20_000, delta=1)
        self.assertIsNone(report["end_unix_ns"])
        self.assertIn("to now", self.job("1").stdout)

    def test_a_requeued_job_has_all_its_lives(self):
        self.slurm(job_line(1, begin=T, end=T + 40, state="REQUEUED"), job_line(1, begin=T + 1000, end=T + 1060))
        self.run_of(1, "0", T, T + 40, {"n1": {"package0": 100}})
        self.run_of(1, "0-restart1", T + 1000, T + 1060, {"n1": {"package0": 100}})
        report = self.report("1")
        self.assertAlmostEqual(report["energy_j"], 10_000, delta=1)
        self.assertEqual((report["lives"], report["elapsed_s"]), (2, 100))
        self.assertNotIn("partly-measured", self.codes(report))

    def test_an_array_is_its_tasks(self):
        self.slurm(job_line(20, shown="20_0"), job_line(21, shown="20_1"))
        self.run_of(20, "batch", T, T + 100, {"n1": {"package0": 100}})
        self.run_of(21, "batch", T, T + 100, {"n1": {"package0": 200}})
        self.assertEqual([round(report["energy_j"]) for report in self.report("20")], [10_000, 20_000])
        self.assertIn("2 of 2 jobs measured, 30.00 kJ together", self.job("20").stdout)

    def test_a_number_that_another_job_had_before(self):
        self.slurm(job_line(1, begin=T + 10_000_000, end=T + 10_000_100))
        self.run_of(1, "0", T, T + 100, {"n1": {"package0": 100}})
        report = self.report("1")
        self.assertIsNone(report["energy_j"])
        self.assertIn("no-energy", self.codes(report))

    def test_a_purged_job_is_shown_as_far_as_it_was_measured(self):
        self.run_of(1, "0", T, T + 100, {"n1": {"package0": 100}})
        report = self.report("1")
        self.assertFalse(report["known_to_slurm"])
        self.assertAlmostEqual(report["energy_j"], 10_000, delta=1)
        self.assertIn("unknown-to-slurm", self.codes(report))

    def test_bad_input_gets_a_clear_answer(self):
        for words, what in ((["99"], "Slurm knows no job 99 of yours"), (["one"], '"one" is no job'), (["1;2"], "is no job"), ([], "no job is given"),
                            (["--summary", "--month", "November"], "is no month"), (["--summary", "1"], "not of one job"), (["--user", "ada", "1"], "--summary")):
            with self.subTest(words=words):
                self.assertIn(what, self.job(*words, code=2).stderr)

    def test_somebody_elses_job(self):
        self.slurm(scontrol="slurm_load_jobs error: Access/permission denied")
        self.assertIn("not yours", self.job("5", code=2).stderr)

    def test_without_slurm_and_without_accounting(self):
        self.write("bin/sacct", "#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n", 0o755)
        self.write("bin/scontrol", "#!/bin/sh\necho 'JobId=1 JobName=x UserId=ada(1) JobState=RUNNING Restarts=0 "
                   "StartTime=2023-11-14T22:13:20 EndTime=Unknown NodeList=n1 TRES=cpu=1,mem=1G'\n", 0o755)
        report = self.report("1")
        self.assertEqual((report["state"], report["memory_bytes"]), ("RUNNING", 2**30))
        self.assertIn("slurm", self.codes(report))
        self.env["PATH"] = self.path("nothing")
        self.assertIn("there is no Slurm here", self.job("1", code=2).stderr)

    def test_damaged_and_lost_runs_leave_the_rest(self):
        self.slurm(job_line(1))
        self.run_of(1, "0", T, T + 100, {"n1": {"package0": 100}})
        self.index(1, "1", self.path("runs/gone"))
        self.write("runs/broken/run.json", "{")
        self.index(1, "2", self.path("runs/broken"))
        os.makedirs(self.path("records/1"))
        self.write("records/1/n1.json", "no json")
        report = self.report("1")
        self.assertAlmostEqual(report["energy_j"], 10_000, delta=1)
        self.assertEqual(sorted(code for code in self.codes(report) if code.endswith("-unreadable")), ["record-unreadable", "run-unreadable", "run-unreadable"])

    def test_a_run_given_by_hand(self):
        self.slurm(job_line(1))
        write_run(self.path("mine"), T, T + 100, {"n1": {"package0": 100}})
        self.assertAlmostEqual(self.report("1", "mine")["energy_j"], 10_000, delta=1)

    def test_a_month(self):
        import datetime
        month = lambda m, day: int(datetime.datetime(2023, m, day, 12).timestamp())
        self.slurm(job_line(1, begin=month(11, 10), end=month(11, 10) + 100, energy="30000"), job_line(2, begin=month(11, 11), end=month(11, 11) + 100, user="bob"),
                   job_line(3, begin=month(10, 31), end=month(11, 1)), job_line(4, begin=month(11, 30), end=month(12, 1)))
        self.run_of(1, "0", month(11, 10), month(11, 10) + 100, {"n1": {"package0": 100}})
        done = json.loads(self.job("--summary", "--month", "2023-11", "--account", "physics", "--json").stdout)
        self.assertEqual([job["job"] for job in done["jobs"]], ["1", "2", "3"])  # a job counts where it ended
        self.assertEqual((done["all"]["jobs"], done["all"]["measured_jobs"], done["all"]["consumed_j"]), (3, 1, 30_000))
        self.assertAlmostEqual(done["all"]["energy_j"], 10_000, delta=1)
        self.assertIn("--accounts physics --allusers", self.read("asked"))
        self.assertIn("--starttime 2023-11-01 --endtime 2023-12-01", self.read("asked"))
        text = self.job("--summary", "--month", "2023-11").stdout
        self.assertIn("+200 %", text)
        self.assertIn("2 of 3 jobs were not measured", text)


if __name__ == "__main__":
    unittest.main()
