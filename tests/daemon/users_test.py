"""ergometerd and its users as real processes: who may not read the processor's energy measures it through the daemon."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

from daemon_world import DAEMON, GROUP, TOOL, USER, ZONE, DaemonTest, wait_until


class UsersTest(DaemonTest):
    def run_as_user(self, groups=(GROUP,)):
        """A run in which the counter grows by 50 J; the summary."""
        home = f"{self.dir}/home"
        # It ends well after the step, so that the step is not cut by the end.
        script = "touch begun; until [ -e go ]; do sleep 0.05; done; sleep 0.5"
        tool = self.spawn(*self.user_argv("run", "-o", "run", "--sensors", "rapl", "--", "sh", "-c", script,
                                          groups=groups), env=self.user_env, cwd=home)
        self.assertTrue(wait_until(lambda: os.path.exists(f"{home}/begun") or tool.poll() is not None))
        time.sleep(0.5)  # so that there are readings before the step, however slow the machine
        self.energy(1050)
        open(f"{home}/go", "w").close()
        _, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 0, errors)
        show = subprocess.run(self.user_argv("show", "run", "--json"), env=self.user_env, cwd=home,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(show.returncode, 0, show.stderr)
        return json.loads(show.stdout), errors

    def test_an_ordinary_user_measures_the_energy_that_only_root_may_read(self):
        self.start_daemon()
        summary, errors = self.run_as_user()
        domains = summary["nodes"][0]["domains"]
        self.assertEqual([d["domain"] for d in domains if d["in_total"]], ["package/0"])
        self.assertAlmostEqual(domains[0]["energy_j"], 50, delta=0.5)
        self.assertTrue(domains[0]["measured"])
        self.assertNotIn("sensor-forbidden", {w["code"] for w in summary["warnings"]})
        self.assertNotIn("permission denied", errors)

    def test_without_a_daemon_the_absence_names_it(self):
        absence = self.only_absence("rapl")
        self.assertIn("permission denied", absence["reason"])
        self.assertIn("ergometerd (docs/daemon.md)", absence["remedy"])

    def test_root_reads_directly_and_only_once(self):
        self.start_daemon()
        run = subprocess.run([TOOL, "sensors", "--json", "--sensors", "rapl", "--host-root", self.dir],
                             capture_output=True, text=True, timeout=60, env=self.user_env)
        self.assertEqual([s["name"] for s in json.loads(run.stdout)["sensors"]], ["rapl"])

    def test_the_user_has_one_source_a_domain(self):
        self.start_daemon()
        found = self.sensors()
        self.assertEqual([s["name"] for s in found["sensors"]], ["rapl-remote"])
        self.assertEqual(found["sensors"][0]["channels"][0]["value"], 1000)
        self.assertEqual([a for a in found["absences"] if a["interface"].startswith("rapl")], [])

    def test_who_is_not_in_the_group_is_refused_with_the_remedy(self):
        self.start_daemon()
        absence = self.only_absence("remote", groups=())
        self.assertIn(f"permission denied: ergometerd serves user {USER} nothing", absence["reason"])
        self.assertIn(f"usermod -aG {GROUP}", absence["remedy"])

    def test_a_user_may_be_named(self):
        self.start_daemon(f'read-groups = []\nread-users = ["{USER}"]\nsensors = ["rapl"]\n')
        self.assertEqual(len(self.sensors(groups=())["sensors"]), 1)

    def test_a_socket_that_may_not_be_written_is_named(self):
        self.start_daemon()
        os.chmod(self.socket, 0o600)
        absence = self.only_absence("remote")
        self.assertIn("cannot be written by this user", absence["reason"])
        self.assertIn(f"chmod 666 {self.socket}", absence["remedy"])

    def test_a_killed_daemon_is_named_and_the_next_takes_its_place(self):
        killed = self.start_daemon()
        killed.kill()
        killed.wait()
        absence = self.only_absence("remote")
        self.assertIn("no ergometerd listens", absence["reason"])
        self.assertIn("systemctl restart", absence["remedy"])
        self.start_daemon()
        self.assertTrue(wait_until(lambda: len(self.sensors()["sensors"]) == 1))

    def test_a_stopped_daemon_ends_well_and_leaves_no_socket(self):
        daemon = self.start_daemon()
        client = self.connect()
        self.assertIn(b"ergometer.daemon/1", client.recv(4096))
        self.stop(daemon)
        self.assertFalse(os.path.exists(self.socket))
        self.assertEqual(client.recv(4096), b"")

    def test_one_daemon_a_node(self):
        self.start_daemon()
        second = subprocess.run([DAEMON, "--config", f"{self.dir}/ergometerd.toml", "--host-root", self.dir],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(second.returncode, 3)
        self.assertIn("another ergometerd serves this node", second.stderr)
        self.assertEqual(len(self.sensors()["sensors"]), 1)

    def test_a_wrong_configuration_is_refused(self):
        file = self.write("bad.toml", 'intervall = "50ms"\n')
        run = subprocess.run([DAEMON, "--config", file, "--host-root", self.dir], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn('bad.toml:1: unknown key "intervall"', run.stderr)
        self.assertIn('did you mean "interval"?', run.stderr)

    def test_takes_the_socket_of_systemd(self):
        # As systemd does it: descriptor 3, LISTEN_FDS and the daemon's own number.
        os.makedirs(os.path.dirname(self.socket))
        self.write("ergometerd.toml", f'read-groups = ["{GROUP}"]\nsensors = ["rapl"]\n')
        script = ("import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(8);"
                  "os.chmod(sys.argv[1], 0o666); os.dup2(s.fileno(), 3); os.set_inheritable(3, True);"
                  "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid())); os.execv(sys.argv[2], sys.argv[2:])")
        daemon = self.spawn(sys.executable, "-c", script, self.socket, DAEMON, "--config",
                            f"{self.dir}/ergometerd.toml", "--host-root", self.dir)
        self.assertTrue(wait_until(lambda: os.path.exists(self.socket)))
        self.assertTrue(wait_until(lambda: len(self.sensors()["sensors"]) == 1))
        self.stop(daemon)
        self.assertTrue(os.path.exists(self.socket), "it is systemd's")

    def test_it_reads_only_while_somebody_asks(self):
        daemon = self.start_daemon()
        client = self.connect()
        client.recv(4096)

        def reads():
            with open(f"/proc/{daemon.pid}/io") as file:
                return int(dict(line.split(": ") for line in file.read().splitlines())["syscr"])

        before = reads()
        client.send(b'{"do":"read","sensor":"rapl"}\n')
        self.assertIn(b'"rows":[[', client.recv(65536))
        self.assertGreater(reads(), before)
        time.sleep(0.5)
        before = reads()
        time.sleep(1)
        self.assertEqual(reads(), before)

    def test_many_clients_and_garbage_leave_it_serving(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
        self.start_daemon()
        clients = [self.connect() for _ in range(200)]
        for number, client in enumerate(clients):
            client.setblocking(False)
            text = [b'{"do":"list"}\n' * 50, os.urandom(3000), b'{"do":"re', b'{"do":"read","sensor":"rapl"}\n'][number % 4]
            try:
                client.send(text)
            except OSError:
                pass  # it has hung up on us already
        # A busy machine may not get through what they asked within a client's patience: the next try has it.
        self.assertTrue(wait_until(lambda: self.sensors()["sensors"]))
        self.assertEqual(self.sensors()["sensors"][0]["channels"][0]["value"], 1000)
        for client in clients[3::4]:
            client.settimeout(30)
            heard = b""
            while heard.count(b"\n") < 2:
                heard += client.recv(65536)
            self.assertIn(b"1000.0]]", heard)

    def test_a_run_outlives_the_daemon(self):
        daemon = self.start_daemon()
        home = f"{self.dir}/home"
        script = "touch begun; until [ -e go ]; do sleep 0.05; done"
        tool = self.spawn(*self.user_argv("run", "-o", "run", "--sensors", "rapl", "--", "sh", "-c", script),
                          env=self.user_env, cwd=home)
        self.assertTrue(wait_until(lambda: os.path.exists(f"{home}/begun")))
        time.sleep(0.5)
        daemon.kill()
        daemon.wait()
        time.sleep(0.5)
        open(f"{home}/go", "w").close()
        _, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 0, errors)
        nodes = os.listdir(f"{home}/run/nodes")
        with open(f"{home}/run/nodes/{nodes[0]}/events.csv") as events:
            self.assertIn("rapl-remote,lost", events.read())


if __name__ == "__main__":
    unittest.main()
