"""A real Slurm on this host, in a folder of its own: munged, slurmctld and a slurmd a node (n1, n2, ...), on free ports; on request
with accounting (slurmdbd and mariadbd). For tests that submit jobs; needs root and the packages slurm-wlm and munge, and for
accounting slurmdbd and mariadb-server.

    with SlurmCluster(folder) as cluster:
        subprocess.run(["sbatch", ...], env=os.environ | cluster.env)
"""

import os
import pwd
import random
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo")
ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr")
USER, OTHER = "games", "nobody"  # two ordinary users that every Debian has
WHERE = os.environ.get("PATH", "") + ":/usr/sbin"


def why_not(accounting=False):
    """Why no cluster can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    wanted = PROGRAMS + (ACCOUNTING if accounting else ())
    missing = [name for name in wanted if not shutil.which(name, path=WHERE)]
    packages = "slurm-wlm, munge" + (", slurmdbd, mariadb-server" if accounting else "")
    return f"missing: {', '.join(missing)} (Debian: {packages})" if missing else ""


def why_not_users():
    """Why programs cannot run as the two ordinary users; empty if they can: in some containers those cannot even reach /bin."""
    try:
        done = subprocess.run(as_user(USER, "/bin/true"), check=False)
    except (OSError, KeyError) as error:
        return f"no programs as another user here: {error}"
    return "" if done.returncode == 0 else "no programs as another user here"


def as_user(name, *words):
    who = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups", *words]


def free_ports(count):
    """Below the ports that Linux gives to outgoing connections, which would take one before its server does."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class SlurmCluster:
    """`features`: one a node. `cpus` a node. `private`: PrivateData=jobs. `plugstack`: the text of plugstack.conf. `settings`:
    further lines of slurm.conf."""

    def __init__(self, folder, features=("cpu", "gpu"), cpus=1, accounting=False, private=False, plugstack="", settings=()):
        self.folder = os.path.abspath(folder)
        self.features, self.cpus, self.accounting, self.private = features, cpus, accounting, private
        self.plugstack, self.settings = plugstack, settings
        self.processes = []
        self.slurmd = {}
        self.env = {"SLURM_CONF": self.path("slurm.conf"), "PATH": WHERE}

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def nodes(self):
        return [f"n{i + 1}" for i in range(len(self.features))]

    def write(self, name, text, mode=0o644):
        with open(os.open(self.path(name), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "w") as file:
            file.write(text)

    def configure(self):
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        host = socket.gethostname().split(".")[0]
        controller, self.dbd_port, *nodes = free_ports(2 + len(self.features))
        lines = [f"ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}", "SlurmUser=root",
                 "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={self.path('munge.socket')}", "CredType=cred/munge",
                 f"StateSaveLocation={self.path('state')}", f"SlurmdSpoolDir={self.path('spool-%n')}",
                 f"SlurmctldPidFile={self.path('slurmctld.pid')}", f"SlurmdPidFile={self.path('slurmd-%n.pid')}",
                 f"SlurmctldLogFile={self.path('slurmctld.log')}", f"SlurmdLogFile={self.path('slurmd-%n.log')}",
                 "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "SelectType=select/linear", "MpiDefault=none",
                 "SwitchType=switch/none", "ReturnToService=2", "SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0"]
        if self.accounting:
            lines += ["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1",
                      f"AccountingStoragePort={self.dbd_port}",
                      f"AccountingStoragePass={self.path('munge.socket')}",  # as for AuthInfo: where munged listens
                      "JobAcctGatherType=jobacct_gather/linux"]
        else:
            lines += ["AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none"]
        if self.private:
            lines.append("PrivateData=jobs")
        if self.plugstack:
            self.write("plugstack.conf", self.plugstack)
            lines.append(f"PlugStackConfig={self.path('plugstack.conf')}")
        lines += self.settings
        for name, feature, port in zip(self.nodes, self.features, nodes):
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} Features={feature} State=UNKNOWN")
        lines.append(f"PartitionName=main Nodes=n[1-{len(self.features)}] Default=YES State=UP MaxTime=INFINITE")
        for name in ["state"] + [f"spool-{node}" for node in self.nodes]:
            os.makedirs(self.path(name), exist_ok=True)
        self.write("slurm.conf", "\n".join(lines) + "\n")

    def start_one(self, *words, env=None):
        # A test that is killed leaves no daemons behind.
        tied = ("setpriv", "--pdeathsig", "TERM", *words)
        with open(self.path(f"{words[0]}.out"), "ab") as out:
            self.processes.append(subprocess.Popen(tied, env=os.environ | self.env | (env or {}), stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=out, start_new_session=True))
        return self.processes[-1]

    def start_node(self, node):
        self.slurmd[node] = self.start_one("slurmd", "-D", "-N", node, "-f", self.path("slurm.conf"))

    def start_accounting(self):
        """mariadbd on a socket in the folder, slurmdbd, and the cluster's name in it."""
        self.write("my.cnf", "")  # nothing of this machine's own
        data, sock = self.path("mariadb"), self.path("mariadb.socket")
        subprocess.run(["mariadb-install-db", f"--defaults-file={self.path('my.cnf')}", "--user=root", f"--datadir={data}",
                        "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"],
                       env=os.environ | self.env, check=True, capture_output=True, timeout=120)
        self.start_one("mariadbd", f"--defaults-file={self.path('my.cnf')}", "--user=root", f"--datadir={data}", f"--socket={sock}",
                       "--skip-networking", f"--pid-file={self.path('mariadb.pid')}", "--innodb-flush-log-at-trx-commit=0")
        self.wait_for(lambda: os.path.exists(sock), "mariadbd")
        self.sql("CREATE DATABASE slurm_acct_db")
        self.write("slurmdbd.conf", "\n".join(
            ["AuthType=auth/munge", f"AuthInfo=socket={self.path('munge.socket')}", "DbdHost=localhost", "DbdAddr=127.0.0.1",
             f"DbdPort={self.dbd_port}", "SlurmUser=root", "StorageType=accounting_storage/mysql", "StorageHost=localhost",
             "StorageUser=root", "StorageLoc=slurm_acct_db", f"LogFile={self.path('slurmdbd.log')}",
             f"PidFile={self.path('slurmdbd.pid')}"] + (["PrivateData=jobs"] if self.private else [])) + "\n", 0o600)
        # slurmdbd reads its configuration beside slurm.conf, and the client library knows the socket from the variable.
        self.start_one("slurmdbd", "-D", env={"MYSQL_UNIX_PORT": sock})
        self.wait_for(lambda: self.run("sacctmgr", "--noheader", "list", "cluster").returncode == 0, "slurmdbd")
        for words in (["cluster", "test"], ["account", "physics", "cluster=test"],
                      ["user", "root", "account=physics"], ["user", USER, "account=physics"], ["user", OTHER, "account=physics"]):
            done = self.run("sacctmgr", "--immediate", "add", *words)
            if done.returncode != 0:
                raise RuntimeError(f"sacctmgr: {done.stdout}{done.stderr}")

    def sql(self, text):
        """Runs SQL in the accounting data base, as an administrator's repair would; returns its rows."""
        base = ["slurm_acct_db"] if not text.startswith("CREATE DATABASE") else []
        done = self.run("mariadb", f"--defaults-file={self.path('my.cnf')}", f"--socket={self.path('mariadb.socket')}", "--user=root",
                        "--skip-column-names", f"--execute={text}", *base)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def __enter__(self):
        try:
            self.configure()
            with open(os.open(self.path("munge.key"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as key:
                key.write(os.urandom(1024))
            # --force: its folders belong to a test and not to the system.
            self.start_one("munged", "--foreground", "--force", f"--key-file={self.path('munge.key')}", f"--socket={self.path('munge.socket')}",
                           f"--pid-file={self.path('munge.pid')}", f"--seed-file={self.path('munge.seed')}", f"--log-file={self.path('munge.log')}")
            self.wait_for(lambda: os.path.exists(self.path("munge.socket")), "munged")
            if self.accounting:
                self.start_accounting()
            self.start_one("slurmctld", "-D", "-f", self.path("slurm.conf"))
            for node in self.nodes:
                self.start_node(node)
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

    def run_as(self, user, *words, env=None, **options):
        """As an ordinary user with a home folder of their own below this cluster's."""
        home = self.home(user)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("ERGOMETER_", "SLURM_"))}
        return subprocess.run(as_user(user, *words), env=clean | self.env | {"HOME": home, "USER": user} | (env or {}), cwd=home,
                              capture_output=True, text=True, timeout=options.pop("timeout", 120), **options)

    def home(self, user):
        path = self.path(f"home-{user}")
        if not os.path.isdir(path):
            who = pwd.getpwnam(user)
            os.makedirs(path)
            os.chmod(path, 0o700)
            os.chown(path, who.pw_uid, who.pw_gid)
        return path

    def wait_for(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} did not start in {seconds} s:\n{self.last_words()}")
            time.sleep(0.2)

    def last_words(self):
        """The ends of the logs: the folder may be gone before anybody looks."""
        out = self.run("sinfo", "--Node", "--long").stdout
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(self.path(name), errors="replace") as file:
                    out += f"--- {name}\n{file.read()[-1000:]}"
        return out

    def wait_until_empty(self, seconds=180):
        """Until no job waits or runs."""
        end = time.monotonic() + seconds
        while self.run("squeue", "--noheader", "--format=%i").stdout.strip():
            if time.monotonic() > end:
                raise TimeoutError("jobs do not end: " + self.run("squeue").stdout)
            time.sleep(0.2)

    def __exit__(self, *_):
        if self.slurmd:
            self.run("scancel", "--state=PENDING")
            self.run("scancel", "--state=RUNNING", "--signal=KILL", "--full")
            self.run("scancel", "--state=RUNNING")
        for process in reversed(self.processes):  # one after the other: slurmdbd waits for a data base that is gone
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
