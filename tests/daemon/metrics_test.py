"""The metrics endpoint, looked at by promtool and scraped by a real Prometheus."""

import json
import os
import shutil
import socket
import subprocess
import unittest
import urllib.parse
import urllib.request

from daemon_world import DAEMON, GROUP, ZONE, DaemonTest, wait_until

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../apps/daemon")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    # Nothing between us and this machine.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        return answer.read().decode()


class MetricsTest(DaemonTest):
    def start(self):
        self.port = free_port()
        daemon = self.start_daemon(f'read-groups = ["{GROUP}"]\nsensors = ["rapl"]\nmetrics = "127.0.0.1:{self.port}"\n')
        self.assertTrue(wait_until(self.answers))
        return daemon

    def answers(self):
        try:
            get(f"http://127.0.0.1:{self.port}/metrics")
            return True
        except OSError:
            return False

    def energy_of(self, text):
        lines = [line for line in text.splitlines() if line.startswith("ergometer_energy_joules_total{")]
        self.assertEqual(len(lines), 1, text)
        self.assertIn('domain="package/0"', lines[0])
        return float(lines[0].rsplit(" ", 1)[1])

    def scraped(self):
        return self.energy_of(get(f"http://127.0.0.1:{self.port}/metrics"))

    def test_counts_joules_over_wraps(self):
        self.start()
        self.assertEqual(self.scraped(), 1000)
        self.energy(1500)
        self.assertTrue(wait_until(lambda: self.scraped() == 1500))
        self.energy(100)  # the counter has wrapped at 262143.32885 J
        self.assertTrue(wait_until(lambda: self.scraped() > 1500))
        self.assertAlmostEqual(self.scraped(), 262143.32885 + 100, places=3)

    def test_what_cannot_be_read_is_no_number(self):
        self.start()
        self.scraped()
        os.remove(f"{self.dir}/{ZONE}/energy_uj")
        up = 'ergometer_sensor_up{sensor="rapl"} '
        self.assertTrue(wait_until(lambda: up + "0" in get(f"http://127.0.0.1:{self.port}/metrics")))
        self.assertNotIn("ergometer_energy_joules_total{", get(f"http://127.0.0.1:{self.port}/metrics"))
        self.energy(1000)
        self.assertTrue(wait_until(lambda: up + "1" in get(f"http://127.0.0.1:{self.port}/metrics")))
        self.assertEqual(self.scraped(), 1000)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian: prometheus)")
    def test_promtool_finds_nothing_to_say(self):
        self.start()
        check = subprocess.run(["promtool", "check", "metrics"], input=get(f"http://127.0.0.1:{self.port}/metrics"),
                               capture_output=True, text=True, timeout=60)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian: prometheus)")
    def test_promtool_understands_the_example_configuration(self):
        check = subprocess.run(["promtool", "check", "config", f"{EXAMPLES}/prometheus.yml"], capture_output=True, text=True,
                               timeout=60)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertNotIn("WARNING", check.stdout + check.stderr)

    def test_it_is_off_unless_configured(self):
        daemon = self.start_daemon()
        listening = subprocess.run(["ls", "-l", f"/proc/{daemon.pid}/fd"], capture_output=True, text=True).stdout
        inodes = {line.split("socket:[")[1].rstrip("]") for line in listening.splitlines() if "socket:[" in line}
        with open("/proc/net/tcp") as four, open("/proc/net/tcp6") as six:
            tcp = {line.split()[9] for line in four.read().splitlines()[1:] + six.read().splitlines()[1:]}
        self.assertEqual(inodes & tcp, set())

    def test_an_address_that_is_taken_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            file = self.write("taken.toml", f'metrics = "127.0.0.1:{taken.getsockname()[1]}"\nsensors = ["rapl"]\n')
            run = subprocess.run([DAEMON, "--config", file, "--host-root", self.dir], capture_output=True, text=True,
                                 timeout=60)
        self.assertEqual(run.returncode, 3)
        self.assertIn("cannot serve metrics at 127.0.0.1:", run.stderr)

    @unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed (Debian: prometheus)")
    def test_prometheus_scrapes_it(self):
        self.start()
        with open(f"{EXAMPLES}/prometheus.yml") as example:
            text = example.read()
        self.assertIn("127.0.0.1:9788", text)
        config = self.write("prometheus.yml", text.replace("127.0.0.1:9788", f"127.0.0.1:{self.port}")
                            .replace("15s", "1s"))
        port = free_port()
        self.spawn("prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.dir}/tsdb",
                   f"--web.listen-address=127.0.0.1:{port}")

        def query(expression):
            try:
                answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?"
                                        + urllib.parse.urlencode({"query": expression})))
            except OSError:
                return None
            self.assertEqual(answer["status"], "success", answer)
            return [float(r["value"][1]) for r in answer["data"]["result"]]

        self.assertTrue(wait_until(lambda: query('ergometer_energy_joules_total{in_total="true"}') == [1000], 60))
        self.assertEqual(query("ergometer_sensor_up"), [1])
        # What the dashboard asks is understood.
        with open(f"{EXAMPLES}/grafana-dashboard.json") as file:
            dashboard = json.load(file)
        expressions = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
        self.assertGreaterEqual(len(expressions), 3)
        for expression in expressions:
            self.assertIsNotNone(query(expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
                                       .replace("$instance", ".*")))


if __name__ == "__main__":
    unittest.main()
