"""A profile that a real Slurm recorded, energy included, imported from its HDF5 files: of the job and of one step on one node."""

import glob
import os
import subprocess
import sys
import time

from harness import *
from slurm_cluster import SlurmCluster, why_not

PLUGIN = glob.glob("/usr/lib/*/slurm*/acct_gather_profile_hdf5.so")
LIBRARY = glob.glob("/usr/lib/*/libhdf5_serial.so.103*")
# Slurm reads a node's power from here; the files are a tmpfs that only the test's processes see.
COUNTERS = "/sys/cray/pm_counters"


def why_no_profile():
    if why_not():
        return why_not()
    if not PLUGIN or not LIBRARY:
        return "missing: Slurm's HDF5 plugin (Debian: slurm-wlm-hdf5-plugin)"
    return ""


class ProfilingCluster(SlurmCluster):
    def configure(self):
        super().configure()
        with open(self.path("slurm.conf")) as file:
            text = file.read()
        text = "\n".join(line for line in text.splitlines() if not line.startswith("JobAcctGatherType"))
        with open(self.path("slurm.conf"), "w") as file:
            file.write(text + "\nJobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=1,energy=1\n"
                       "AcctGatherProfileType=acct_gather_profile/hdf5\nAcctGatherNodeFreq=1\n"
                       "AcctGatherEnergyType=acct_gather_energy/pm_counters\n")
        os.makedirs(self.path("profile"), exist_ok=True)
        with open(self.path("acct_gather.conf"), "w") as file:
            file.write(f"ProfileHDF5Dir={self.path('profile')}\nProfileHDF5Default=All\n")


def in_own_mounts():
    """Runs this file again where /sys has the counters; the exit status is its."""
    script = f"""set -e
old=$(mktemp -d); mount --rbind /sys "$old"; mount -t tmpfs tmpfs /sys
mkdir -p {COUNTERS} /sys/fs/cgroup /sys/devices
mount --rbind "$old/fs/cgroup" /sys/fs/cgroup; mount --rbind "$old/devices" /sys/devices
cd {COUNTERS}
echo '140 W 1' > power; echo '1000 J 1' > energy; echo 1 > freshness; echo 1 > generation; echo 10 > raw_scan_hz
echo 1 > version; echo '1 on' > startup
cd /; "$@"; umount -R "$old" || true
"""
    environment = os.environ | {"ERGOMETER_OWN_MOUNTS": "1"}
    return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", sys.executable, *sys.argv], env=environment).returncode


class Profile(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="ergometer-profile-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        with ProfilingCluster(os.path.join(cls.folder, "cluster")) as cluster:
            done = cluster.run("srun", "-N2", "--profile=all", "--acctg-freq=task=1,energy=1", "sleep", "5")
            assert done.returncode == 0, done.stderr
            files = lambda: glob.glob(os.path.join(cluster.path("profile"), "*", "*_0_*.h5"))
            cluster.wait_for(lambda: len(files()) == 2, "the profiles")
            time.sleep(1)  # the last rows are written as the step daemon ends
            shutil.copy(sorted(files())[0], os.path.join(cls.folder, "1_0_n1.h5"))
            merged = cluster.run("sh5util", "-j", "1", "-o", os.path.join(cls.folder, "job_1.h5"), "-p", cluster.path("profile"))
            assert merged.returncode == 0, merged.stderr

    def import_file(self, name):
        done = self.tool("import", os.path.join(self.folder, name), "-o", "r", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.tool("show", "r", "--json", text=True).stdout)

    def test_a_job_of_two_nodes(self):
        summary = self.import_file("job_1.h5")
        self.assertEqual([node["name"] for node in summary["nodes"]], ["n1", "n2"])
        for node in summary["nodes"]:
            meters = [domain for domain in node["domains"] if domain["domain"] == "node"]
            self.assertEqual(len(meters), 1)
            self.assertAlmostEqual(meters[0]["mean_power_w"], 140, delta=0.5)
            self.assertTrue(meters[0]["in_total"])
        run = summary["run"]
        self.assertAlmostEqual(run["energy_j"], 280 * run["duration_s"] * self.covered(summary), delta=0.02 * run["energy_j"])
        self.assertEqual(sorted(os.listdir(self.path("r/nodes/n1/samples"))),
                         ["step0-energy.csv.zst", "step0-task-0.csv.zst"])

    @staticmethod
    def covered(summary):
        meters = [d for node in summary["nodes"] for d in node["domains"] if d["domain"] == "node"]
        return sum(d["coverage"] for d in meters) / len(meters)

    def test_one_step_on_one_node(self):
        summary = self.import_file("1_0_n1.h5")
        self.assertEqual([node["name"] for node in summary["nodes"]], ["n1"])
        self.assertAlmostEqual(summary["nodes"][0]["domains"][0]["mean_power_w"], 140, delta=0.5)

    def test_a_file_that_was_cut_is_named(self):
        with open(os.path.join(self.folder, "job_1.h5"), "rb") as file:
            whole = file.read()
        for share in (0.1, 0.5, 0.9):
            with open(self.path("cut.h5"), "wb") as file:
                file.write(whole[: int(len(whole) * share)])
            done = self.tool("import", "cut.h5", "-o", f"r{share}", text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("cut.h5", done.stderr)
            self.assertFalse(os.path.exists(self.path(f"r{share}")))


if __name__ == "__main__":
    if why_no_profile():
        print(f"skipped: {why_no_profile()}")
        sys.exit(77)
    if "ERGOMETER_OWN_MOUNTS" not in os.environ:
        sys.exit(in_own_mounts())
    unittest.main()
