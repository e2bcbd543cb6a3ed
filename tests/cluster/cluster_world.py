"""Ranks and nodes of a run on one machine: each rank is the built program with the variables of its launcher."""

from harness import *

MARK = f"{TOOL} mark"


class ClusterTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("fake.toml", SCENARIO)
        os.mkdir(self.path("local"))
        for name in list(self.env):
            if name.startswith(("SLURM", "OMPI", "PMI", "TORCHELASTIC")) or name in ("RANK", "WORLD_SIZE"):
                del self.env[name]
        self.env["ERGOMETER_SENSORS"] = f"fake={self.path('fake.toml')}"
        self.env["ERGOMETER_LOCAL_DIR"] = self.path("local")

    def launch_env(self, rank, size, run_id="t", local_size=None):
        """As torchrun sets it."""
        return self.env | {"TORCHELASTIC_RUN_ID": run_id, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
                           "LOCAL_WORLD_SIZE": str(size if local_size is None else local_size),
                           "GROUP_WORLD_SIZE": "1"}

    def step_env(self, node, nodes, rank, ranks_a_node=1, job="77"):
        """As slurmd sets it on the node of that number, from 0."""
        return self.env | {"SLURM_JOB_ID": job, "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_NODEID": str(node),
                           "SLURM_LOCALID": str(rank % ranks_a_node), "SLURM_STEP_NUM_TASKS": str(nodes * ranks_a_node),
                           "SLURM_STEP_NUM_NODES": str(nodes), "SLURM_STEP_NODELIST": f"n[1-{nodes}]",
                           "SLURM_STEP_TASKS_PER_NODE": f"{ranks_a_node}(x{nodes})",
                           "SLURMD_NODENAME": f"n{node + 1}"}

    def node_root(self, node):
        """A host root that looks like a machine of its own."""
        root = f"root{node}"
        self.write(f"{root}/proc/sys/kernel/hostname", f"host{node}\n")
        return self.path(root)

    def start_rank(self, env, *arguments, before=(), **options):
        """Starts the tool as one rank; `before` are words before it (unshare ...)."""
        options.setdefault("cwd", self.dir)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([*before, TOOL, *arguments], env=env, text=True, **options)
        self.addCleanup(self.end, process)
        return process

    def finish(self, ranks, seconds=60):
        """Their exit codes and standard errors, in order."""
        told = [rank.communicate(timeout=seconds)[1] for rank in ranks]
        return [rank.returncode for rank in ranks], told

    def part(self, run, node=None):
        nodes = [n for n in os.listdir(self.path(f"{run}/nodes")) if not n.startswith(".")]
        if node is None:
            self.assertEqual(len(nodes), 1, nodes)
            node = nodes[0]
        return json.loads(self.read(f"{run}/nodes/{node}/part.json"))

    def wait_for_part(self, run, node, condition=lambda part: True, seconds=30):
        def ready():
            try:
                return condition(self.part(run, node))
            except (OSError, ValueError):
                return False
        self.assertTrue(wait_until(ready, seconds), f"no such part of {node}")

    def wait_for_file(self, name, seconds=30):
        self.assertTrue(wait_until(lambda: os.path.exists(self.path(name)), seconds), name)

    def summary(self, run):
        shown = self.tool("show", run, "--json", text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)
