"""A real Slurm of two nodes on this host, in a folder of its own: munged, slurmctld and a slurmd a node, on free ports. For
tests that submit jobs; needs root and the packages slurm-wlm and munge.

    with SlurmCluster(folder) as cluster:
        subprocess.run(["sbatch", ...], env=os.environ | cluster.env)
"""

import os
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo")


def why_not():
    """Why no cluster can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin")]
    return f"missing: {', '.join(missing)} (Debian: slurm-wlm, munge)" if missing else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class SlurmCluster:
    def __init__(self, folder, features=("cpu", "gpu")):
        self.folder = os.path.abspath(folder)
        self.features = features
        self.processes = []
        self.env = {"SLURM_CONF": self.path("slurm.conf"), "PATH": os.environ.get("PATH", "") + ":/usr/sbin"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self):
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        host = socket.gethostname().split(".")[0]
        controller, *nodes = free_ports(1 + len(self.features))
        lines = [f"ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}", "SlurmUser=root",
                 "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={self.path('munge.socket')}", "CredType=cred/munge",
                 f"StateSaveLocation={self.path('state')}", f"SlurmdSpoolDir={self.path('spool-%n')}",
                 f"SlurmctldPidFile={self.path('slurmctld.pid')}", f"SlurmdPidFile={self.path('slurmd-%n.pid')}",
                 f"SlurmctldLogFile={self.path('slurmctld.log')}", f"SlurmdLogFile={self.path('slurmd-%n.log')}",
                 "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/linear", "MpiDefault=none",
                 "SwitchType=switch/none", "ReturnToService=2", "SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0",
                 "AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none"]
        for number, (feature, port) in enumerate(zip(self.features, nodes), 1):
            lines.append(f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 Features={feature} State=UNKNOWN")
        lines.append(f"PartitionName=main Nodes=n[1-{len(self.features)}] Default=YES State=UP MaxTime=INFINITE")
        for name in ["state"] + [f"spool-n{i + 1}" for i in range(len(self.features))]:
            os.makedirs(self.path(name), exist_ok=True)
        with open(self.path("slurm.conf"), "w") as file:
            file.write("\n".join(lines) + "\n")

    def start_one(self, *words):
        with open(self.path(f"{words[0]}.out"), "ab") as out:
            self.processes.append(subprocess.Popen(words, env=os.environ | self.env, stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=out, start_new_session=True))

    def __enter__(self):
        try:
            self.configure()
            with open(os.open(self.path("munge.key"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as key:
                key.write(os.urandom(1024))
            # --force: its folders belong to a test and not to the system.
            self.start_one("munged", "--foreground", "--force", f"--key-file={self.path('munge.key')}", f"--socket={self.path('munge.socket')}",
                           f"--pid-file={self.path('munge.pid')}", f"--seed-file={self.path('munge.seed')}", f"--log-file={self.path('munge.log')}")
            self.wait_for(lambda: os.path.exists(self.path("munge.socket")), "munged")
            self.start_one("slurmctld", "-D", "-f", self.path("slurm.conf"))
            for number in range(len(self.features)):
                self.start_one("slurmd", "-D", "-N", f"n{number + 1}", "-f", self.path("slurm.conf"))
            self.wait_for(self.is_up, "the nodes")
        except BaseException:
            self.__exit__()
            raise
        return self

    def is_up(self):
        done = self.run("sinfo", "--noheader", "--Node", "--format=%N %t")
        return done.returncode == 0 and done.stdout.count("idle") == len(self.features)

    def run(self, *words, **options):
        return subprocess.run(words, env=os.environ | self.env, capture_output=True, text=True, timeout=60, **options)

    def wait_for(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not start: see {self.folder}")
            time.sleep(0.2)

    def wait_until_empty(self, seconds=180):
        """Until no job waits or runs."""
        end = time.monotonic() + seconds
        while self.run("squeue", "--noheader", "--format=%i").stdout.strip():
            if time.monotonic() > end:
                raise TimeoutError("jobs do not end: " + self.run("squeue").stdout)
            time.sleep(0.2)

    def __exit__(self, *_):
        self.run("scancel", "--user=root") if len(self.processes) > 2 else None
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
