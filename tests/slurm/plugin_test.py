"""The SPANK plugin in a real Slurm of three nodes: a step with --ergometer has one sampler a node and one run; and whatever
happens to the sampler, the job runs as without us."""

import json
import signal
import socket
import stat
import subprocess

from slurm_world import *

DAEMON = os.environ.get("ERGOMETERD_BIN", "")
TRUE_STEP = ("srun", "--ergometer", "-wn1", "sh", "-c", "echo out; echo err >&2; exit 7")


def step_runs(run):
    return os.path.exists(f"{run}/run.json") and not parts_are_complete(run)


class Plugin(SlurmTest):
    def setUp(self):
        self.set_program(f'exec {TOOL} "$@"')

    def run_of(self, job, step="0"):
        return f"{self.home}/ergometer-jobs/{job}/{step}"

    def summary(self, run):
        return json.loads(self.ok(self.as_user(TOOL, "show", "--json", run)).stdout)

    def srun(self, *words, **options):
        """A step of the user's; its job's number and what it did."""
        done = self.as_user("srun", *words, **options)
        jobs = os.listdir(f"{self.home}/ergometer-jobs") if os.path.isdir(f"{self.home}/ergometer-jobs") else []
        return max(jobs, key=int, default=None), done

    def test_F92_two_ranks_on_each_of_three_nodes_are_three_nodes_once(self):
        job, done = self.srun("--ergometer", "-N3", "-n6", "sh", "-c", f"{TOOL} mark begin work; sleep 2; {TOOL} mark end work")
        self.ok(done)
        run = self.run_of(job)
        self.assertTrue(wait_until(lambda: parts_are_complete(run)))
        summary = self.summary(run)
        nodes = {node["name"]: node for node in summary["nodes"]}
        self.assertEqual(sorted(nodes), ["n1", "n2", "n3"])
        total = 0
        for name, node in nodes.items():
            package, = (d for d in node["domains"] if d["domain"] == "package/0")
            self.assertAlmostEqual(package["mean_power_w"], WATTS[name], delta=0.2 * WATTS[name])
            total += package["energy_j"]
        self.assertAlmostEqual(summary["run"]["energy_j"], total, places=6)
        self.assertTrue(summary["run"]["valid"], summary["warnings"])
        self.assertEqual({region["rank"] for region in summary["regions"] if region["name"] == "work" and region["rank"] is not None}, set(range(6)))
        for node in nodes:
            with open(f"{run}/nodes/{node}/part.json") as file:
                part = json.load(file)
            self.assertEqual(part["state"], "complete")
            self.assertEqual([rank["exit_code"] for rank in part["ranks"]], [0, 0])
        self.assertEqual(os.readlink(f"{self.home}/.local/share/ergometer/jobs/test/{job}/0"), run)
        # All of it is the user's own.
        self.assertEqual({os.lstat(os.path.join(at, name)).st_uid for at, folders, files in os.walk(f"{self.home}/ergometer-jobs") for name in folders + files},
                         {os.stat(self.home).st_uid})

    def test_steps_of_a_batch_job_are_measured_with_it(self):
        job = self.submit("--ergometer", "-N2", "--wrap", "srun true; srun --ergometer=off true; srun sleep 0.2")
        self.assertTrue(wait_until(lambda: self.state(job) == "COMPLETED"), self.state(job))
        steps = {name for name in os.listdir(f"{self.home}/ergometer-jobs/{job}") if os.path.isdir(f"{self.home}/ergometer-jobs/{job}/{name}")}
        self.assertEqual(steps, {"batch", "0", "2"})

    def test_several_tasks_a_node_hold_neither_the_steps_begin_nor_its_end(self):
        """Its sampler is ready before the first task and ends by itself: it waits for no task to be measured by its own means."""
        done = self.ok(self.as_user("srun", "--ergometer", "-N3", "-n6", "sh", "-c", 'test -e "$ERGOMETER_RUN/markers" && echo ready; sleep 0.3'))
        self.assertEqual(done.stdout, "ready\n" * 6)
        self.assertTrue(wait_until(self.cluster.is_up))
        job = max(os.listdir(f"{self.home}/ergometer-jobs"), key=int)
        for node in WATTS:
            self.assertNotIn(f"[{job}.0] ergometer: the sampler did not end", self.log(node))

    def test_without_the_option_nothing_happens(self):
        before = sorted(os.listdir(self.home))
        done = self.ok(self.as_user("srun", "-N1", "sh", "-c", "echo ${ERGOMETER_RUN-unset}"))
        self.assertEqual(done.stdout, "unset\n")
        self.assertEqual(sorted(os.listdir(self.home)), before)

    def test_options_of_the_user(self):
        folder = f"{self.home}/mine"
        self.ok(self.as_user("srun", f"--ergometer=dir={folder}/%j-%s,interval=50ms,sensors=rapl", "-wn1", "sleep", "0.5"))
        run = os.path.join(folder, [name for name in os.listdir(folder) if not name.endswith(".log")][0])
        with open(f"{run}/nodes/n1/node.json") as file:
            self.assertEqual({sensor["interface"].split("-")[0] for sensor in json.load(file)["sensors"]}, {"rapl"})
        for option, nearest in (("intervall=5s", "interval"), ("sensor=nvml", "sensors")):
            done = self.as_user("srun", f"--ergometer={option}", "-N1", "true")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'did you mean "{nearest}"', done.stderr)
        self.assertIn("interval", self.as_user("sbatch", "--ergometer=interval=5", "--wrap", "true").stderr)

    def assert_untouched(self, done):
        self.assertEqual((done.returncode, done.stdout), (7, "out\n"), done.stderr)
        self.assertEqual([line for line in done.stderr.splitlines() if not line.startswith("srun: error: vm") and "Exited with exit code" not in line], ["err"])

    def test_a_sampler_that_fails_is_a_line_in_the_log(self):
        for text, told in ((f"exit 1", "ended before the step"), ("kill -KILL $$", "ended before the step"), ("kill -SEGV $$", "ended before the step")):
            with self.subTest(text=text):
                self.set_program(text)
                self.assert_untouched(self.as_user(*TRUE_STEP))
                self.assertTrue(wait_until(lambda: told in self.log("n1")))
        os.rename(f"{self.folder}/program", f"{self.folder}/gone")
        self.assert_untouched(self.as_user(*TRUE_STEP))
        self.assertTrue(wait_until(lambda: f"{self.folder}/program: No such file" in self.log("n1")))

    def test_a_sampler_that_hangs_is_ended(self):
        self.set_program(f"echo $$ > {self.home}/hanging; trap '' TERM; while :; do sleep 1; done")
        self.assert_untouched(self.as_user(*TRUE_STEP))
        self.assertTrue(wait_until(lambda: "did not end and was stopped" in self.log("n1")))
        with open(f"{self.home}/hanging") as file:
            pid = int(file.read())
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}")))
        self.assertTrue(wait_until(self.cluster.is_up))  # the nodes are free again

    def test_a_home_that_cannot_be_written(self):
        for home in ("/proc/nothing", "/", "relative", ""):
            with self.subTest(home=home):
                self.assert_untouched(self.as_user(*TRUE_STEP, env={"HOME": home}))

    def test_a_full_disk(self):
        full = f"{self.folder}/full"
        os.makedirs(full, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", full], capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", full])
        try:
            with open(f"{full}/filler", "wb", buffering=0) as file:
                while file.write(b"x" * 4096):
                    pass
        except OSError:
            pass
        self.assert_untouched(self.as_user(*TRUE_STEP[:1], f"--ergometer=dir={full}/%j/%s", *TRUE_STEP[2:]))

    def test_slow_storage_holds_no_task_and_loses_nothing(self):
        slow = f"export LD_PRELOAD={os.environ['SLOW_STORAGE']} SLOW_FOLDER={self.home} SLOW_MS=150"
        self.set_program(f'{slow}; exec {TOOL} "$@"')
        self.assert_untouched(self.as_user(*TRUE_STEP))
        job = max(os.listdir(f"{self.home}/ergometer-jobs"), key=int)
        self.assertTrue(wait_until(lambda: parts_are_complete(self.run_of(job))))
        self.assertNotIn(f"[{job}.0] ergometer: the sampler did not end", self.log("n1"))
        self.assertEqual(self.summary(self.run_of(job))["run"]["exit_code"], 7)

    def test_a_sampler_that_is_killed_leaves_what_it_had(self):
        self.set_program(f'echo $$ > {self.home}/pid-$SLURMD_NODENAME; exec {TOOL} "$@"')
        step = subprocess.Popen(slurm_cluster.as_user(self.user, "srun", "--ergometer", "-N3", "sleep", "4"), cwd=self.home,
                                env=os.environ | self.cluster.env | {"HOME": self.home})
        self.addCleanup(step.wait)
        self.assertTrue(wait_until(lambda: os.path.exists(f"{self.home}/pid-n2")))
        time.sleep(2)
        with open(f"{self.home}/pid-n2") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertEqual(step.wait(60), 0)
        job = max(os.listdir(f"{self.home}/ergometer-jobs"), key=int)
        summary = self.summary(self.run_of(job))
        self.assertEqual(sorted(node["name"] for node in summary["nodes"]), ["n1", "n2", "n3"])
        self.assertFalse(summary["run"]["valid"])
        self.assertTrue(any("n2" in warning["message"] for warning in summary["warnings"]), summary["warnings"])

    def kill_node(self, node):
        """Everything of a node at once, as if its power failed: slurmd, step daemons, samplers and tasks."""
        self.cluster.slurmd[node].kill()
        log = self.cluster.path(f"slurmd-{node}.log")
        # Another test's cluster on this host has nodes of the same names.
        mine = f"SLURM_CONF={self.cluster.env['SLURM_CONF']}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    of_node = {f"SLURMD_NODENAME={node}".encode(), mine} <= set(file.read().split(b"\0"))
                files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
                if of_node or log in files:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass  # gone, or the kernel's

    def test_a_node_that_dies_is_named_and_the_others_are_kept(self):
        step = subprocess.Popen(slurm_cluster.as_user(self.user, "srun", "--ergometer", "-N3", "sleep", "60"), cwd=self.home,
                                env=os.environ | self.cluster.env | {"HOME": self.home}, stderr=subprocess.DEVNULL)
        self.addCleanup(step.wait)
        self.assertTrue(wait_until(lambda: self.state_of_all() == 3))
        time.sleep(2)
        self.kill_node("n3")
        self.addCleanup(self.cluster.wait_for, self.cluster.is_up, "the nodes")
        self.addCleanup(self.cluster.start_node, "n3")
        job = max(os.listdir(f"{self.home}/ergometer-jobs"), key=int)
        self.as_user("scancel", job)
        run = self.run_of(job)

        def ended():
            parts = {}
            for node in ("n1", "n2", "n3"):
                with open(f"{run}/nodes/{node}/part.json") as file:
                    parts[node] = json.load(file)["state"]
            return parts == {"n1": "complete", "n2": "complete", "n3": "running"}

        self.assertTrue(wait_until(ended))
        summary = self.summary(run)
        self.assertFalse(summary["run"]["valid"])
        self.assertTrue(any("n3" in warning["message"] for warning in summary["warnings"]), summary["warnings"])
        self.assertFalse(any("n1" in warning["message"] for warning in summary["warnings"] if warning["code"] == "part-not-complete"), summary["warnings"])
        for node in summary["nodes"]:
            self.assertGreater(node["energy_j"], 0, node["name"])

    def state_of_all(self):
        """How many nodes of the newest step have a part."""
        jobs = os.listdir(f"{self.home}/ergometer-jobs") if os.path.isdir(f"{self.home}/ergometer-jobs") else []
        run = self.run_of(max(jobs, key=int, default="0"))
        return sum(os.path.exists(f"{run}/nodes/n{i}/part.json") for i in (1, 2, 3)) if step_runs(run) else 0

    def test_a_cancelled_job_is_measured_up_to_its_end(self):
        job = self.submit("--ergometer", "-wn1", "--wrap", "sleep 300")
        self.assertTrue(wait_until(lambda: os.path.exists(f"{self.run_of(job, 'batch')}/nodes/n1/node.json")))
        time.sleep(1)
        self.as_user("scancel", job)
        self.assertTrue(wait_until(lambda: self.state(job) == "CANCELLED"))
        self.assertTrue(wait_until(lambda: self.summary(self.run_of(job, "batch"))["run"]["valid"]))

    def test_the_daemon_hears_of_jobs(self):
        self.assertTrue(wait_until(self.cluster.is_up))  # the end of another test's job is no news here
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(f"{self.folder}/daemon.sock")
        self.addCleanup(os.unlink, f"{self.folder}/daemon.sock")
        server.listen(8)
        lines = []

        def serve():
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, client.makefile("rw") as text:
                    text.write('{"schema":"ergometer.daemon/1","version":"0","now_ns":1}\n')
                    text.flush()
                    lines.append(json.loads(text.readline()))
                    text.write('{"ok":true}\n')
                    text.flush()

        threading.Thread(target=serve, daemon=True).start()
        self.ok(self.as_user("srun", "-N1", "true"))
        self.assertTrue(wait_until(lambda: len(lines) == 2), lines)
        job = lines[0]["job_begin"]["job"]
        self.assertEqual(lines, [{"job_begin": {"job": job, "uid": os.stat(self.home).st_uid, "user": self.user}}, {"job_end": {"job": job}}])


    @unittest.skipUnless(DAEMON, "ergometerd is not built")
    def test_the_real_daemon_keeps_a_record_of_a_job_that_nobody_asked_to_measure(self):
        self.assertTrue(wait_until(self.cluster.is_up))
        root = f"{self.folder}/roots/n1"
        records = f"{root}/records"
        os.makedirs(f"{root}/proc/sys/kernel", exist_ok=True)
        with open(f"{root}/proc/sys/kernel/hostname", "w") as file:
            file.write("n1\n")
        self.addCleanup(shutil.rmtree, f"{root}/proc")
        with open(f"{self.folder}/ergometerd.toml", "w") as file:
            file.write(f'sensors = ["rapl"]\njobs = true\njob-interval = "1s"\njob-records = "/records"\n')
        daemon = subprocess.Popen([DAEMON, "--config", f"{self.folder}/ergometerd.toml", "--host-root", root], stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        socket_file = f"{root}/run/ergometer/ergometerd.sock"
        self.assertTrue(wait_until(lambda: os.path.exists(socket_file)))
        os.symlink(socket_file, f"{self.folder}/daemon.sock")
        self.addCleanup(os.unlink, f"{self.folder}/daemon.sock")
        self.ok(self.as_user("srun", "-wn1", "sleep", "4"))

        def ended():
            for job in os.listdir(records) if os.path.isdir(records) else []:
                with open(f"{records}/{job}/n1.json") as file:
                    record = json.load(file)
                if record["state"] == "complete":
                    return record
            return None

        self.assertTrue(wait_until(ended))
        record = ended()
        self.assertEqual((record["user"], record["node"]), (self.user, "n1"))
        package, = (d for d in record["domains"] if d["domain"] == "package/0")
        self.assertAlmostEqual(package["mean_power_w"], WATTS["n1"], delta=0.2 * WATTS["n1"])
        # The job's owner reads it; nobody else can open it.
        self.assertEqual(os.stat(f"{records}/{record['job']}/n1.json").st_uid, os.stat(self.home).st_uid)
        report = json.loads(self.ok(self.as_user(TOOL, "job", "--json", "--records", records, record["job"])).stdout)
        self.assertAlmostEqual(report["energy_j"], package["energy_j"], places=6)
        self.assertEqual([d["source"] for node in report["nodes"] for d in node["domains"] if d["in_total"]], ["daemon"])


class ByDefault(SlurmTest):
    site = "default=on dir=%h/site/%j-%s colour=red"

    def test_the_site_measures_all_and_a_user_can_say_no(self):
        self.ok(self.as_user("srun", "-wn1", "sleep", "0.3"))
        self.assertEqual({name.split(".")[0] for name in os.listdir(f"{self.home}/site")}, {"1-0"})
        self.ok(self.as_user("srun", "--ergometer=off", "-wn1", "true"))
        self.assertEqual({name.split(".")[0] for name in os.listdir(f"{self.home}/site")}, {"1-0"})
        self.assertIn('does not know "colour"', self.log("n1"))


if __name__ == "__main__":
    unittest.main()
