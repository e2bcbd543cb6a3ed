"""What the tests of studies share: small study files over a quick command, and what the study's folder says afterwards."""

from harness import *


def study_text(factors, command="sh -c 'echo {a}; exit 0'", rest="", name="t"):
    return f'name = "{name}"\ncommand = {json.dumps(command)}\n[factors]\n{factors}\n{rest}\n'


class StudyTest(CliTest):
    def setUp(self):
        super().setUp()
        # In memory where there is such a place: each line of a journal is synced, and disks may be busy.
        if os.path.isdir("/dev/shm"):
            self.dir = tempfile.mkdtemp(prefix="ergometer-study-", dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.fake = self.write("scenario.toml", SCENARIO)
        # Nothing of the real machine: neither its sensors nor its locks.
        self.root = self.path("root")
        for folder in ("proc", "sys", "run/lock", "dev"):
            os.makedirs(os.path.join(self.root, folder), exist_ok=True)
        self.env["ERGOMETER_SENSORS"] = f"fake={self.fake}"

    def study(self, action, *arguments, **options):
        options.setdefault("text", True)
        options.setdefault("timeout", 120)
        return self.tool("study", action, *arguments, **options)

    def run_study(self, *arguments, code=0, **options):
        done = self.study("run", *arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def journal(self, folder="runs/t"):
        lines = []
        for name in sorted(os.listdir(self.path(folder))):
            if name.startswith("journal"):
                lines += [json.loads(line) for line in self.read(f"{folder}/{name}").splitlines()]
        return lines

    def ended(self, folder="runs/t"):
        return [line for line in self.journal(folder) if line["kind"] == "ended"]

    def started(self, folder="runs/t"):
        return [line["run"] for line in self.journal(folder) if line["kind"] == "started"]

    def table_json(self, folder="runs/t"):
        return json.loads(self.read(f"{folder}/table.json"))
