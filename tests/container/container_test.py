"""The image recipe and the Kubernetes files: what they mount and name is what code and docs say; and a container made of
exactly those mounts, with namespaces of its own and no capability, in which daemon and tool work. No container runtime is
needed and none is tested."""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import yaml
except ImportError:
    yaml = None

TOOL, DAEMON = os.environ["ERGOMETER_BIN"], os.environ["ERGOMETERD_BIN"]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# As the kernel has it: what is in the class is a link.
ZONES = "sys/devices/virtual/powercap"
ZONE = f"{ZONES}/intel-rapl/intel-rapl:0"


def text_of(name):
    with open(os.path.join(ROOT, name)) as file:
        return file.read()


def documents(name):
    return [d for d in yaml.safe_load_all(text_of(f"packaging/kubernetes/{name}")) if d]


def constant(file, name):
    """A path that the code has."""
    return re.search(rf'{name} = "([^"]+)"', text_of(file)).group(1)


SOCKET = constant("src/device/remote/protocol.hpp", "kSocket")
CONFIG = constant("apps/daemon/main.cpp", "kConfigFile")


def can_make_containers():
    if os.geteuid() != 0 or platform.machine() != "x86_64":
        return False
    try:
        return subprocess.run(["unshare", "--mount", "--cgroup", "--ipc", "--uts", "--net", "--pid", "--fork",
                               "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Files(unittest.TestCase):
    def setUp(self):
        self.daemon = {d["kind"]: d for d in documents("ergometerd.yaml")}
        self.pod = self.daemon["DaemonSet"]["spec"]["template"]["spec"]
        self.job = documents("job.yaml")[0]["spec"]["template"]["spec"]

    @staticmethod
    def mounts(pod):
        """Mount path to host path; None for what is no folder of the host."""
        volumes = {v["name"]: v.get("hostPath", {}).get("path") for v in pod["volumes"]}
        return {m["mountPath"]: volumes[m["name"]] for m in pod["containers"][0]["volumeMounts"]}

    def test_the_daemon_finds_what_it_reads_and_serves_where_the_node_looks(self):
        container = self.pod["containers"][0]
        self.assertEqual(container["args"][0], "--host-root")
        root = container["args"][1]
        mounts = self.mounts(self.pod)
        self.assertEqual(mounts[root + "/sys"], "/sys")
        self.assertEqual(mounts[root + "/proc"], "/proc")
        self.assertEqual(mounts[root + os.path.dirname(SOCKET)], os.path.dirname(SOCKET))
        self.assertIn(os.path.dirname(CONFIG), mounts)
        self.assertEqual(list(self.daemon["ConfigMap"]["data"]), [os.path.basename(CONFIG)])
        for kind in ("DaemonSet", "ConfigMap"):
            self.assertEqual(self.daemon[kind]["metadata"]["namespace"], self.daemon["Namespace"]["metadata"]["name"])
        labels = self.daemon["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(self.daemon["DaemonSet"]["spec"]["selector"]["matchLabels"].items(), labels.items())

    def test_the_job_reaches_the_socket_and_may_read(self):
        self.assertEqual(self.mounts(self.job)[os.path.dirname(SOCKET)], os.path.dirname(SOCKET))
        config = self.daemon["ConfigMap"]["data"][os.path.basename(CONFIG)]
        group = int(re.search(r'read-groups = \["(\d+)"\]', config).group(1))
        self.assertIn(group, self.job["securityContext"]["supplementalGroups"])

    def test_metrics_are_where_prometheus_is_sent(self):
        config = self.daemon["ConfigMap"]["data"][os.path.basename(CONFIG)]
        port = int(re.search(r'metrics = "0.0.0.0:(\d+)"', config).group(1))
        self.assertEqual(self.pod["containers"][0]["ports"][0]["containerPort"], port)
        annotations = self.daemon["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
        self.assertEqual(annotations["prometheus.io/port"], str(port))

    def test_the_docs_name_each_mount(self):
        page = text_of("docs/containers.md")
        for pod in (self.pod, self.job):
            for path, host in self.mounts(pod).items():
                self.assertIn(f"`{path}`", page)
                if host:
                    self.assertIn(f"`{host}`", page)

    def test_the_recipe_copies_and_installs_what_there_is(self):
        recipe = text_of("packaging/container/Dockerfile")
        for source in re.findall(r"^COPY (\S+) ", recipe, re.M):
            if not source.startswith("--"):
                self.assertTrue(os.path.exists(os.path.join(ROOT, source)), source)
        self.assertIn("# reference workloads", text_of("scripts/packages.txt"))
        for option in re.findall(r"-D(ERGOMETER_\w+)=", recipe):
            self.assertRegex(text_of("CMakeLists.txt"), rf"option\({option} ")
        for package in ("prometheus-cpp-dev", "python3", "libfreeipmi17", "libcurl4"):
            self.assertIn(package, recipe)
            self.assertIn(package, text_of("scripts/packages.txt").split())
        self.assertEqual(self.pod["containers"][0]["command"], ["/usr/sbin/ergometerd"])
        self.assertIn("-DCMAKE_INSTALL_PREFIX=/usr ", recipe)
        self.assertIn("CMAKE_INSTALL_SBINDIR", text_of("apps/daemon/CMakeLists.txt"))


@unittest.skipUnless(yaml, "python3-yaml is not installed")
@unittest.skipUnless(can_make_containers(), "needs root that may make namespaces and mounts, on x86_64")
class Containers(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ergometer-container-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)
        # The node: folders below here stand for those of a host.
        os.makedirs(f"{self.dir}/node/{ZONE}")
        os.makedirs(f"{self.dir}/node/sys/class/powercap")
        os.symlink("../../devices/virtual/powercap/intel-rapl/intel-rapl:0",
                   f"{self.dir}/node/sys/class/powercap/intel-rapl:0")
        for name, content in (("name", "package-0\n"), ("max_energy_range_uj", "262143328850\n")):
            with open(f"{self.dir}/node/{ZONE}/{name}", "w") as file:
                file.write(content)
        self.energy(1000)
        os.chmod(f"{self.dir}/node/{ZONE}/energy_uj", 0o400)
        kinds = {d["kind"]: d for d in documents("ergometerd.yaml")}
        self.config = kinds["ConfigMap"]["data"]
        self.pod = kinds["DaemonSet"]["spec"]["template"]["spec"]
        self.job = documents("job.yaml")[0]["spec"]["template"]["spec"]

    def energy(self, joules):
        path = f"{self.dir}/node/{ZONE}/energy_uj"
        with open(path, "r+b" if os.path.exists(path) else "wb", buffering=0) as file:
            file.write(b"%-15d\n" % int(joules * 1e6))

    def source_of(self, volume):
        """The folder that stands for a volume."""
        if "hostPath" in volume:
            path, kind = volume["hostPath"]["path"], volume["hostPath"].get("type")
            if path == "/proc":
                return path
            here = f"{self.dir}/node{path}"
            if kind == "DirectoryOrCreate":
                os.makedirs(here, exist_ok=True)
            self.assertTrue(os.path.isdir(here), f"{path} is missing on the node")
            return here
        here = f"{self.dir}/volumes/{volume['name']}"
        os.makedirs(here, exist_ok=True)
        if "configMap" in volume:
            for name, content in self.config.items():
                with open(f"{here}/{name}", "w") as file:
                    file.write(content)
        else:
            os.chmod(here, 0o777)
        return here

    def container(self, pod, name, **changes):
        """The argv of a container as the pod describes it."""
        spec = pod["containers"][0]
        security = pod.get("securityContext", {}) | spec["securityContext"]
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(security["readOnlyRootFilesystem"])
        volumes = {v["name"]: v for v in pod["volumes"]}
        mounts = [[self.source_of(volumes[m["name"]]), m["mountPath"], m.get("readOnly", False)] for m in spec["volumeMounts"]]
        mounts += [[TOOL, "/usr/local/bin/ergometer", True], [DAEMON, "/usr/sbin/ergometerd", True]]
        # What every runtime mounts and covers by itself.
        mounts.append([f"{self.dir}/node/sys", "/sys", True])
        os.makedirs(f"{self.dir}/roots/{name}", exist_ok=True)
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | {e["name"]: e["value"] for e in spec.get("env", [])}
        container = {"root": f"{self.dir}/roots/{name}", "host_pid": pod.get("hostPID", False), "mounts": mounts, "masked": [f"/{ZONES}"],
                     "uid": security["runAsUser"], "gid": security.get("runAsGroup", 0),
                     "groups": security.get("supplementalGroups", []), "directory": spec.get("workingDir", "/"),
                     "environment": environment, "command": spec["command"] + spec["args"]}
        return [sys.executable, f"{HERE}/enter.py", json.dumps(container | changes)]

    def run_job(self, *command, **changes):
        return subprocess.run(self.container(self.job, "job", command=list(command), **changes), capture_output=True,
                              text=True, timeout=60)

    def start_daemon(self):
        daemon = subprocess.Popen(self.container(self.pod, "daemon"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
        self.addCleanup(self.end, daemon)
        until = time.monotonic() + 60
        while not os.path.exists(f"{self.dir}/node{SOCKET}"):
            self.assertIsNone(daemon.poll(), daemon.poll() is not None and daemon.stdout.read())
            self.assertLess(time.monotonic(), until, "the daemon does not serve")
            time.sleep(0.05)
        return daemon

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def test_a_job_without_rights_reads_through_the_daemons_container(self):
        self.start_daemon()
        sensors = self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl")
        self.assertEqual(sensors.returncode, 0, sensors.stderr)
        found = json.loads(sensors.stdout)
        self.assertEqual([s["name"] for s in found["sensors"]], ["rapl-remote"], found["absences"])
        # The job as it is written, but shorter and without what else this machine has.
        command = self.job["containers"][0]["command"]
        script = "sleep 0.5; touch begun; until [ -e go ]; do sleep 0.05; done; sleep 0.5"
        job = subprocess.Popen(self.container(self.job, "job", command=command[:2] + ["--sensors", "rapl"] + command[2:]
                                              + ["sh", "-c", script]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, job)
        runs = f"{self.dir}/volumes/runs"
        until = time.monotonic() + 60
        while not os.path.exists(f"{runs}/begun") and job.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        self.energy(1050)
        open(f"{runs}/go", "w").close()
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, errors)
        shown = subprocess.run([TOOL, "show", f"{runs}/training", "--json"], capture_output=True, text=True, timeout=60)
        summary = json.loads(shown.stdout)
        self.assertAlmostEqual(summary["run"]["energy_j"], 50, delta=1)
        self.assertEqual([d["domain"] for d in summary["nodes"][0]["domains"]], ["package/0"])

    def test_without_the_group_the_job_is_refused(self):
        self.start_daemon()
        sensors = json.loads(self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl", groups=[]).stdout)
        self.assertEqual(sensors["sensors"], [])
        self.assertTrue(any("serves user 1000 nothing" in a["reason"] for a in sensors["absences"]), sensors["absences"])

    def test_without_the_mount_the_remedy_is_the_daemon(self):
        self.start_daemon()
        del self.job["containers"][0]["volumeMounts"][0]
        sensors = json.loads(self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl").stdout)
        self.assertEqual(sensors["sensors"], [])
        absence = next(a for a in sensors["absences"] if a["interface"] == "rapl")
        self.assertIn("hidden in this container", absence["reason"])
        self.assertIn("ergometerd", absence["remedy"])

    def test_a_zone_that_is_not_hidden_is_read_through_the_daemon_as_well(self):
        self.start_daemon()
        sensors = json.loads(self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl", masked=[]).stdout)
        self.assertEqual([s["name"] for s in sensors["sensors"]], ["rapl-remote"])

    def test_a_container_with_a_time_of_its_own_is_refused(self):
        self.start_daemon()
        sensors = json.loads(self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl", own_time=True).stdout)
        self.assertEqual(sensors["sensors"], [])
        self.assertTrue(any("monotonic clock is not this program's" in a["reason"] for a in sensors["absences"]),
                        sensors["absences"])

    def test_a_daemon_that_starts_again_is_found_by_running_containers(self):
        first = self.start_daemon()
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(timeout=60), 0)
        self.start_daemon()
        sensors = json.loads(self.run_job("ergometer", "sensors", "--json", "--sensors", "rapl").stdout)
        self.assertEqual([s["name"] for s in sensors["sensors"]], ["rapl-remote"])

    def test_metrics_are_served_in_the_pods_network(self):
        daemon = self.start_daemon()
        ask = "import urllib.request; print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open('http://127.0.0.1:9788/metrics', timeout=30).read().decode())"
        text = subprocess.run(["nsenter", "-t", str(daemon.pid), "-n", sys.executable, "-c", ask], capture_output=True, text=True,
                              timeout=60)
        self.assertIn('ergometer_energy_joules_total{', text.stdout, text.stderr)


if __name__ == "__main__":
    unittest.main()
