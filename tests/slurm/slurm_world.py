"""What the tests of the plugin and of `ergometer job` share: a real Slurm whose nodes have host roots of their own, with
processors of different power."""

import json
import os
import shutil
import tempfile
import threading
import time
import unittest

import slurm_cluster

TOOL = os.environ["ERGOMETER_BIN"]
PLUGIN = os.environ.get("ERGOMETER_SPANK", "")
WATTS = {"n1": 100, "n2": 200, "n3": 400}


def why_not(accounting=False):
    if not PLUGIN:
        return "the plugin is not built (Debian: libslurm-dev)"
    return slurm_cluster.why_not(accounting) or slurm_cluster.why_not_users()


def parts_are_complete(run):
    """srun returns when its tasks have ended; the samplers end their parts of the run right after."""
    try:
        states = []
        for node in os.listdir(f"{run}/nodes"):
            with open(f"{run}/nodes/{node}/part.json") as file:
                states.append(json.load(file)["state"])
    except (OSError, ValueError):
        return False
    return bool(states) and set(states) == {"complete"}


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.1)
    return True


class Roots:
    """A fake /sys a node, with an energy counter that a thread lets grow at the node's power."""

    def __init__(self, folder):
        self.folder = folder
        self.stop = threading.Event()
        self.begin = time.monotonic()
        for node in WATTS:
            os.makedirs(self.zone(node))
            for name, text in (("name", "package-0\n"), ("max_energy_range_uj", "262143328850\n")):
                with open(f"{self.zone(node)}/{name}", "w") as file:
                    file.write(text)
        self.write()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def zone(self, node):
        return f"{self.folder}/{node}/sys/class/powercap/intel-rapl:0"

    def write(self):
        for node, watts in WATTS.items():
            with open(f"{self.zone(node)}/energy_uj", "r+b" if os.path.exists(f"{self.zone(node)}/energy_uj") else "wb", buffering=0) as file:
                file.write(b"%-15d\n" % int(watts * (time.monotonic() - self.begin) * 1e6))

    def run(self):
        while not self.stop.wait(0.02):
            self.write()

    def end(self):
        self.stop.set()
        self.thread.join()


class SlurmTest(unittest.TestCase):
    """One cluster a class. `program` is a script that a test may replace; without that it is the tool."""

    options = {}
    site = ""

    @classmethod
    def setUpClass(cls):
        if reason := why_not(cls.options.get("accounting", False)):
            raise unittest.SkipTest(reason)
        cls.folder = tempfile.mkdtemp(prefix="ergometer-slurm-")
        os.chmod(cls.folder, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.roots = Roots(f"{cls.folder}/roots")
        cls.addClassCleanup(cls.roots.end)
        cls.set_program(f'exec {TOOL} "$@"')
        line = f"optional {PLUGIN} program={cls.folder}/program host_root={cls.folder}/roots/%n daemon={cls.folder}/daemon.sock {cls.site}\n"
        cls.cluster = cls.enterClassContext(slurm_cluster.SlurmCluster(f"{cls.folder}/slurm", ("cpu",) * 3, cpus=2, plugstack=line, **cls.options))
        cls.user = slurm_cluster.USER
        cls.home = cls.cluster.home(cls.user)

    @classmethod
    def set_program(cls, text):
        with open(f"{cls.folder}/program.new", "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(f"{cls.folder}/program.new", 0o755)
        os.rename(f"{cls.folder}/program.new", f"{cls.folder}/program")

    def ok(self, done):
        self.assertEqual(done.returncode, 0, f"{done.args}\n{done.stdout}\n{done.stderr}")
        return done

    def as_user(self, *words, **options):
        return self.cluster.run_as(self.user, *words, **options)

    def submit(self, *words, **options):
        """Number of a batch job."""
        return self.ok(self.as_user("sbatch", "--parsable", "--output=/dev/null", *words, **options)).stdout.strip()

    def state(self, job):
        return self.cluster.run("scontrol", "--oneliner", "show", "job", job).stdout.partition("JobState=")[2].partition(" ")[0]

    def log(self, node):
        with open(self.cluster.path(f"slurmd-{node}.log"), errors="replace") as file:
            return file.read()
