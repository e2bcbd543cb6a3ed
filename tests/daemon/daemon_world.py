"""What the daemon's process tests share: a fake host root whose energy counter only root may read, the daemon over it,
and the tool as an ordinary user."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

TOOL = os.environ["ERGOMETER_BIN"]
DAEMON = os.environ["ERGOMETERD_BIN"]
USER, GROUP = 65534, 54321  # nobody, and a group that exists nowhere else
ZONE = "sys/class/powercap/intel-rapl:0"


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.02)
    return True


def can_be_several_users():
    """Root that may run programs as another user: in some containers other users cannot even reach /bin."""
    try:
        return os.geteuid() == 0 and subprocess.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "/bin/true"], check=False).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(can_be_several_users(), "needs root that may run programs as another user")
class DaemonTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ergometerd-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.makedirs(f"{self.dir}/{ZONE}")
        os.makedirs(f"{self.dir}/home")
        os.chmod(f"{self.dir}/home", 0o777)
        self.write(f"{ZONE}/name", "package-0\n")
        self.write(f"{ZONE}/max_energy_range_uj", "262143328850\n")
        self.energy(1000)
        os.chmod(f"{self.dir}/{ZONE}/energy_uj", 0o400)

    def write(self, name, text):
        with open(f"{self.dir}/{name}", "w") as file:
            file.write(text)
        return f"{self.dir}/{name}"

    def energy(self, joules):
        # In one write, so that nobody sees a part.
        with open(f"{self.dir}/{ZONE}/energy_uj", "r+b" if os.path.exists(f"{self.dir}/{ZONE}/energy_uj") else "wb",
                  buffering=0) as file:
            file.write(b"%-15d\n" % int(joules * 1e6))

    @property
    def socket(self):
        return f"{self.dir}/run/ergometer/ergometerd.sock"

    def spawn(self, *argv, **options):
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def start_daemon(self, config=f'read-groups = ["{GROUP}"]\nsensors = ["rapl"]\n'):
        file = self.write("ergometerd.toml", config)
        process = self.spawn(DAEMON, "--config", file, "--host-root", self.dir)
        self.assertTrue(wait_until(lambda: os.path.exists(self.socket) or process.poll() is not None))
        self.assertIsNone(process.poll(), process.stderr and process.poll() is not None and process.stderr.read())
        return process

    def user_argv(self, *arguments, groups=(GROUP,)):
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}",
                f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups",
                TOOL, *arguments]

    @property
    def user_env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("ERGOMETER_")}
        return env | {"HOME": f"{self.dir}/home", "ERGOMETER_HOST_ROOT": self.dir}

    def sensors(self, groups=(GROUP,), only="rapl"):
        """What an ordinary user can measure."""
        run = subprocess.run(self.user_argv("sensors", "--json", "--sensors", only, groups=groups), env=self.user_env,
                             cwd=f"{self.dir}/home", capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def only_absence(self, interface, **options):
        found = self.sensors(**options)
        self.assertEqual(found["sensors"], [])
        matching = [a for a in found["absences"] if a["interface"] == interface]
        self.assertEqual(len(matching), 1, found["absences"])
        return matching[0]

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(30)
        client.connect(self.socket)
        self.addCleanup(client.close)
        return client

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 0)
