"""A fake machine for the tests of `ergometer control`: two GPUs, a RAPL zone and two CPU policies, whose settings outlive
every process."""

from harness import *

GPUS = """gpus = 2
gpu.limit = 300
gpu.limit_min = 100
gpu.limit_max = 400
gpu.limit_default = 400
"""
ZONE = "sys/class/powercap/intel-rapl:0"
POLICY = "sys/devices/system/cpu/cpufreq/policy"
FILES = {
    f"{ZONE}/name": "package-0\n",
    f"{ZONE}/enabled": "0\n",
    f"{ZONE}/constraint_0_name": "long_term\n",
    f"{ZONE}/constraint_0_power_limit_uw": "175000000\n",
    f"{ZONE}/constraint_0_time_window_us": "27983872\n",
    "proc/sys/kernel/random/boot_id": "boot-one\n",
}
for cpu in (0, 1):
    FILES |= {
        f"{POLICY}{cpu}/scaling_governor": "powersave\n",
        f"{POLICY}{cpu}/scaling_available_governors": "performance powersave\n",
        f"{POLICY}{cpu}/scaling_min_freq": "1000000\n",
        f"{POLICY}{cpu}/scaling_max_freq": "3000000\n",
        f"{POLICY}{cpu}/cpuinfo_min_freq": "800000\n",
        f"{POLICY}{cpu}/cpuinfo_max_freq": "3500000\n",
    }
UNTOUCHED_GPU = {"limit_mw": 300000, "clock": (0, 0), "memory": (0, 0), "persistence": 0}
TOUCHING = ["gpu/power=250W", "gpu/0/clock=1200MHz", "package/0/power=110W", "cpu/governor=performance",
            "cpu/frequency=2GHz"]


class InMemoryTest(CliTest):
    """Its folder lies in memory where there is such a place: each line of a journal is synced, and disks may be busy."""

    def setUp(self):
        super().setUp()
        if os.path.isdir("/dev/shm"):
            self.dir = tempfile.mkdtemp(prefix="ergometer-control-", dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)


class Machine:
    """One fake machine below a folder."""

    def __init__(self, folder, scenario=""):
        self.root = os.path.join(folder, "root")
        self.folder = folder
        for name, text in FILES.items():
            self.write(name, text)
        self.scenario = os.path.join(folder, "scenario")
        self.play(scenario)
        self.env = {
            "ERGOMETER_HOST_ROOT": self.root,
            "ERGOMETER_NVML": os.environ["FAKE_NVML"],
            "ERGOMETER_FAKE_NVML": self.scenario,
        }

    def play(self, scenario):
        with open(self.scenario, "w") as file:
            file.write(f"{GPUS}state = {self.folder}/state\nlog = {self.folder}/log\n{scenario}")

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.root, name)) as file:
            return file.read()

    @property
    def journal(self):
        return os.path.join(self.root, "run/ergometer/control.journal")

    def gpus(self):
        """What is set on each GPU."""
        path = os.path.join(self.folder, "state")
        if not os.path.exists(path):
            return [dict(UNTOUCHED_GPU) for _ in range(2)]
        all_gpus = []
        with open(path) as file:
            for line in file:
                w = line.split()
                all_gpus.append({"limit_mw": int(w[2]), "clock": (int(w[4]), int(w[5])),
                                 "memory": (int(w[7]), int(w[8])), "persistence": int(w[10])})
        return all_gpus

    def differences(self):
        """What is not as it was at first; empty if all is."""
        found = [f"{name}: {self.read(name)!r}, not {text!r}" for name, text in FILES.items() if self.read(name) != text]
        return found + [f"gpu{i}: {gpu}" for i, gpu in enumerate(self.gpus()) if gpu != UNTOUCHED_GPU]

    def writes(self):
        path = os.path.join(self.folder, "log")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [line.split(" ", 1)[1].strip() for line in file]

    def guardians(self):
        """Process ids of this machine's guardians."""
        pids = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"guard" in words and self.journal.encode() in words and alive(int(name)):
                pids.append(int(name))
        return pids
