"""A fake machine whose limits only the daemon may set, and its users: the driver refuses them and the files are root's."""

import socket

from daemon_world import GROUP, USER, can_be_several_users
from control_world import *

DAEMON = os.environ["ERGOMETERD_BIN"]
REFUSED = "".join(f"gpu.fault = {name} 4\n" for name in (
    "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks",
    "nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks", "nvmlDeviceSetPersistenceMode"))
CONFIG = f'read-groups = []\nsensors = ["rapl"]\ncontrol-groups = ["{GROUP}"]\n'


@unittest.skipUnless(can_be_several_users(), "needs root that may run programs as another user")
class UsersTest(InMemoryTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.machine = self.make_machine(self.dir)

    def make_machine(self, folder, scenario=""):
        """Its `user_env` is what a user's program sees of it."""
        machine = Machine(folder, scenario)
        machine.write("run/lock/.keep", "")
        os.chmod(f"{machine.root}/run/lock", 0o1777)
        with open(machine.scenario) as text:
            refused = text.read() + REFUSED
        machine.user_scenario = f"{folder}/user-scenario"
        with open(machine.user_scenario, "w") as file:
            file.write(refused)
        machine.home = f"{folder}/home"
        os.makedirs(machine.home)
        os.chown(machine.home, USER, USER)
        machine.user_env = self.env | machine.env | {"HOME": machine.home, "ERGOMETER_FAKE_NVML": machine.user_scenario}
        machine.socket = f"{machine.root}/run/ergometer/ergometerd.sock"
        return machine

    def start_daemon(self, config=CONFIG, machine=None):
        machine = machine or self.machine
        with open(f"{machine.folder}/ergometerd.toml", "w") as file:
            file.write(config)
        with open(f"{machine.folder}/daemon.log", "a") as log:
            daemon = subprocess.Popen([DAEMON, "--config", f"{machine.folder}/ergometerd.toml"], env=self.env | machine.env,
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.end, daemon)

        # Since a socket may be left from a daemon that was killed, its own word counts.
        def serves():
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(machine.socket)
                    return bool(probe.recv(4096))
                except OSError:
                    return daemon.poll() is not None
        self.assertTrue(wait_until(serves, 60))
        self.assertIsNone(daemon.poll(), self.log(machine))
        return daemon

    def log(self, machine=None):
        with open(f"{(machine or self.machine).folder}/daemon.log") as log:
            return log.read()

    def as_user(self, *words, groups=(GROUP,), user=USER):
        return ["setpriv", f"--reuid={user}", f"--regid={user}",
                f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups", *words]

    def user_tool(self, *arguments, groups=(GROUP,), user=USER, timeout=120):
        return subprocess.run(self.as_user(TOOL, *arguments, groups=groups, user=user), env=self.machine.user_env,
                              cwd=self.machine.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)

    def start_user_tool(self, *arguments, groups=(GROUP,), user=USER, **options):
        process = subprocess.Popen(self.as_user(TOOL, *arguments, groups=groups, user=user), env=self.machine.user_env,
                                   cwd=self.machine.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(self.end, process)
        return process

    def say(self, *lines, user=0):
        """Lines to the daemon's socket on one connection, in a process of this user; the answers."""
        script = ("import json, socket, sys\ns = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1])\n"
                  "f = s.makefile('r'); print(f.readline(), end='')\n"
                  "for line in sys.argv[2:]:\n s.sendall(line.encode() + b'\\n'); print(f.readline(), end='')\n")
        words = [sys.executable, "-c", script, self.machine.socket, *lines]
        run = subprocess.run(self.as_user(*words, groups=(), user=user) if user else words, capture_output=True, text=True,
                             timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def wait_for_rest(self):
        """Until everything is as it was."""
        self.assertTrue(wait_until(lambda: not self.machine.differences() and not os.path.exists(self.machine.journal), 60),
                        f"{self.machine.differences()}\n{self.log()}")
