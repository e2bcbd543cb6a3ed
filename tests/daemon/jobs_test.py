"""Jobs: what the resource manager tells the daemon, and the record of each job, read by its user."""

import json
import os
import socket
import stat
import subprocess
import sys
import time
import unittest

from daemon_world import USER, ZONE, DaemonTest, wait_until

CONFIG = 'read-groups = []\nsensors = ["rapl"]\njobs = true\njob-interval = "1s"\n'


class JobsTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.write_below("proc/sys/kernel/random/boot_id", "boot-one\n")
        self.write_below("proc/sys/kernel/hostname", "n1\n")

    def write_below(self, name, text):
        os.makedirs(os.path.dirname(f"{self.dir}/{name}"), exist_ok=True)
        self.write(name, text)

    def start(self, config=CONFIG):
        daemon = self.start_daemon(config)
        self.assertTrue(wait_until(self.serves))  # a socket may be left from a daemon that was killed
        return daemon

    def serves(self):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
                return bool(probe.recv(4096))
            except OSError:
                return False

    def say(self, line, user=0):
        script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1])\n"
                  "f = s.makefile('r')\nfirst = f.readline()\n"
                  "if 'schema' in first: s.sendall(sys.argv[2].encode() + b'\\n'); first = f.readline()\nprint(first)")
        words = [sys.executable, "-c", script, self.socket, line if isinstance(line, str) else json.dumps(line)]
        if user:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]
        run = subprocess.run(words, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def begin(self, job, user=USER, **more):
        answer = self.say({"job_begin": {"job": job, "uid": user, "user": "anna", **more}})
        self.assertEqual(answer, {"job": job, "state": "running"})

    def end_job(self, job):
        answer = self.say({"job_end": {"job": job}})
        self.assertEqual(answer, {"job": job, "state": "complete"})
        return self.record(job)

    def file(self, job, name="n1"):
        return f"{self.dir}/var/lib/ergometer/jobs/{job}/{name}.json"

    def record(self, job, **where):
        with open(self.file(job, **where)) as file:
            return json.load(file)

    @staticmethod
    def package(record):
        found = [d for d in record["domains"] if d["domain"] == "package/0"]
        return found[0] if found else None

    def test_a_job_gets_its_nodes_energy_and_its_user_reads_it(self):
        self.start()
        self.begin("12")
        running = self.record("12")
        self.assertEqual((running["state"], running["user"], running["uid"], running["node"]), ("running", "anna", USER, "n1"))
        time.sleep(1.2)
        self.energy(1100)
        record = self.end_job("12")
        self.assertEqual((record["schema"], record["state"], record["attempt"]), ("ergometer.job-part/1", "complete", 0))
        package = self.package(record)
        self.assertAlmostEqual(package["energy_j"], 100, delta=1)
        self.assertGreater(package["uncertainty_j"], 0)
        self.assertGreater(package["coverage"], 0.5)
        self.assertTrue(package["in_total"])
        self.assertEqual(package["scope"], "package")
        self.assertGreater(record["end_ns"], record["begin_ns"])
        self.assertAlmostEqual(record["end_unix_ns"] - record["begin_unix_ns"], record["end_ns"] - record["begin_ns"], delta=1e9)
        self.assertNotIn("last", record)
        status = os.stat(self.file("12"))
        self.assertEqual((status.st_uid, stat.S_IMODE(status.st_mode)), (USER, 0o640))
        as_user = subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "cat", self.file("12")],
                                 capture_output=True, text=True)
        self.assertEqual(as_user.returncode, 0, as_user.stderr)
        other = subprocess.run(["setpriv", f"--reuid={USER - 1}", f"--regid={USER - 1}", "--clear-groups", "cat", self.file("12")],
                               capture_output=True, text=True)
        self.assertNotEqual(other.returncode, 0)

    def test_the_record_grows_while_the_job_runs(self):
        self.start()
        self.begin("12")
        self.energy(1200)
        self.assertTrue(wait_until(lambda: (self.package(self.record("12")) or {}).get("energy_j") is not None and
                                   abs(self.package(self.record("12"))["energy_j"] - 200) < 1, 60), self.record("12"))
        self.assertEqual(self.record("12")["state"], "running")

    def test_a_counter_that_wraps_or_goes_is_treated_as_analysis_does(self):
        self.energy(262100)
        self.start()
        self.begin("12")
        time.sleep(1.5)
        self.energy(56.67115)  # 43.32885 J to the wrap, and these
        record = self.end_job("12")
        self.assertAlmostEqual(self.package(record)["energy_j"], 100, delta=2)
        self.begin("13")
        os.remove(f"{self.dir}/{ZONE}/energy_uj")
        time.sleep(1.5)
        lost = self.package(self.end_job("13"))
        self.assertLess(lost["coverage"] if lost else 0, 0.01, lost)

    def test_jobs_that_share_the_node_name_each_other(self):
        self.start()
        self.begin("12")
        self.begin("13", user=USER - 1)
        time.sleep(1)
        second = self.end_job("13")
        first = self.end_job("12")
        self.assertEqual([o["job"] for o in first["others"]], ["13"])
        self.assertEqual([o["job"] for o in second["others"]], ["12"])
        overlap = (second["end_ns"] - second["begin_ns"]) / 1e9
        self.assertAlmostEqual(first["others"][0]["overlap_s"], overlap, places=3)
        self.assertAlmostEqual(second["others"][0]["overlap_s"], overlap, places=3)
        self.begin("14")
        self.assertEqual(self.end_job("14")["others"], [])

    def test_a_daemon_that_starts_again_goes_on(self):
        for kill in (False, True):
            self.energy(1000)
            job = f"1{int(kill)}"
            daemon = self.start()
            self.begin(job)
            self.energy(1200)
            self.assertTrue(wait_until(lambda: (self.package(self.record(job)) or {}).get("energy_j") is not None and
                                       self.package(self.record(job))["energy_j"] > 199, 60))
            begin = self.record(job)["begin_ns"]
            if kill:
                daemon.kill()
                daemon.wait()
            else:
                self.stop(daemon)
            self.energy(1300)  # while nobody looks
            daemon = self.start()
            self.assertTrue(wait_until(lambda: self.say({"job": job}).get("state") == "running", 30))
            time.sleep(1.2)
            self.energy(1600)
            record = self.end_job(job)
            package = self.package(record)
            self.assertAlmostEqual(package["energy_j"], 600, delta=6, msg=record)
            self.assertEqual(record["begin_ns"], begin)
            self.assertLessEqual(package["coverage"], 1.0001)
            self.stop(daemon)

    def test_a_restart_of_the_node_cuts_the_job(self):
        daemon = self.start()
        self.begin("12")
        daemon.kill()
        daemon.wait()
        self.write_below("proc/sys/kernel/random/boot_id", "boot-two\n")
        self.start()
        self.assertTrue(wait_until(lambda: self.record("12")["state"] == "cut"))
        self.assertEqual(self.say({"job": "12"})["state"], "cut")

    def test_a_requeued_job_keeps_the_record_of_its_first_attempt(self):
        self.start()
        self.begin("12")
        self.end_job("12")
        self.begin("12")
        time.sleep(1.2)
        self.energy(1100)
        self.assertEqual(self.end_job("12")["attempt"], 1)
        self.assertAlmostEqual(self.package(self.record("12"))["energy_j"], 100, delta=1)
        self.assertEqual(self.record("12", name="n1~1")["attempt"], 0)

    def test_an_exclusive_job_ends_what_was_never_ended(self):
        self.start()
        self.begin("12")
        self.begin("13", exclusive=True)
        self.assertEqual(self.record("12")["state"], "cut")
        self.assertEqual(self.end_job("13")["others"], [])

    def test_only_owner_and_root_are_told(self):
        self.start()
        self.begin("12")
        self.begin("13", user=USER - 1)
        self.energy(1100)
        time.sleep(1)
        own = self.say({"job": "12"}, user=USER)
        self.assertAlmostEqual(self.package(own)["energy_j"], 100, delta=1)
        self.assertNotIn("last", own)
        self.assertEqual(self.say({"job": "12"}, user=USER - 1)["error"]["code"], "permission_denied")
        self.assertEqual(self.say({"job": "12"}, user=USER - 2)["error"]["code"], "permission_denied")
        self.assertEqual(self.say({"job": "12"})["state"], "running")
        self.assertEqual(self.say({"job": "99"})["error"]["code"], "not_found")
        self.assertEqual(self.say({"job_end": {"job": "99"}})["error"]["code"], "not_found")
        self.assertEqual(self.say({"job_begin": {"job": "14", "uid": USER, "user": "x"}}, user=USER)["error"]["code"],
                         "permission_denied")
        self.assertFalse(os.path.exists(self.file("14")))

    def test_a_job_id_is_no_path(self):
        self.start()
        for job in ("../../etc", ".", "a/b", "", "x" * 65):
            self.assertIn("error", self.say({"job_begin": {"job": job, "uid": USER, "user": "x"}}), job)
        self.assertEqual(os.listdir(f"{self.dir}/var/lib/ergometer") if os.path.exists(f"{self.dir}/var/lib/ergometer") else [], [])

    def test_told_twice_is_told_once(self):
        self.start()
        self.begin("12_3")
        begin = self.record("12_3")["begin_ns"]
        self.begin("12_3")
        self.end_job("12_3")
        self.assertEqual(self.end_job("12_3")["begin_ns"], begin)

    def test_without_jobs_nobody_is_told(self):
        self.start(CONFIG.replace("jobs = true", "jobs = false"))
        self.assertIn("jobs = true", self.say({"job_begin": {"job": "1", "uid": USER, "user": "x"}})["error"]["hint"])

    def test_old_records_are_removed(self):
        for job, days in (("old", 91), ("young", 1)):
            self.write_below(f"var/lib/ergometer/jobs/{job}/n1.json", "{}\n")
            then = time.time() - days * 86400
            os.utime(self.file(job), (then, then))
        self.write_below("var/lib/ergometer/jobs/old2/n2.json", "{}\n")  # of another node
        os.utime(self.file("old2", name="n2"), (0, 0))
        self.start()
        self.assertTrue(wait_until(lambda: not os.path.exists(os.path.dirname(self.file("old")))))
        self.assertTrue(os.path.exists(self.file("young")))
        self.assertTrue(os.path.exists(self.file("old2", name="n2")))

    def test_records_that_cannot_be_written_fail_no_job(self):
        os.makedirs(f"{self.dir}/var/lib")
        self.write("var/lib/ergometer", "a file, no folder\n")
        self.start()
        self.begin("12")
        self.energy(1100)
        time.sleep(1)
        self.assertAlmostEqual(self.package(self.say({"job": "12"}))["energy_j"], 100, delta=1)
        os.remove(f"{self.dir}/var/lib/ergometer")
        self.assertAlmostEqual(self.package(self.end_job("12"))["energy_j"], 100, delta=1)

    def test_a_broken_record_is_named_and_left(self):
        self.write_below("var/lib/ergometer/jobs/12/n1.json", "{\n")
        daemon = self.start()
        self.begin("13")
        self.end_job("13")
        self.stop(daemon)
        self.assertIn("12/n1.json", daemon.stderr.read())
        with open(self.file("12")) as file:
            self.assertEqual(file.read(), "{\n")


if __name__ == "__main__":
    unittest.main()
