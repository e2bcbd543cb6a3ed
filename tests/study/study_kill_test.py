"""SIGKILL at random moments of a study that sets limits and clocks: of the tool, its process group, its guardian and both.
Afterwards, or after the next start has restored, every setting is what it was, and the study goes on to the same set of runs.
ERGOMETER_STUDY_KILLS sets how often."""

import concurrent.futures
import random

from control_world import *
from study_world import *

KILLS = int(os.environ.get("ERGOMETER_STUDY_KILLS", "24"))
WORKERS = 4
SLOW = "write_ms = 3\n"
VICTIMS = ("tool", "group", "guardian", "tool and guardian", "group and guardian")
STUDY = study_text('power_limit = [200, 250]\ngovernor = ["performance", "powersave"]', command="sleep 0.03",
                   rest="[runs]\nseed = 1")
RUNS = 4


class Kills(StudyTest):
    def start_study(self, machine, env):
        return subprocess.Popen([TOOL, "study", "run", os.path.join(machine.folder, "t.toml"), "-o", os.path.join(machine.folder, "t")],
                                env=env, cwd=machine.folder, start_new_session=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @staticmethod
    def lines(machine, kind):
        try:
            with open(os.path.join(machine.folder, "t", "journal.jsonl")) as file:
                return [json.loads(line)["run"] for line in file if line.endswith("\n") and f'"kind":"{kind}"' in line]
        except FileNotFoundError:
            return []

    @staticmethod
    def kill(victim, tool, machine):
        if "guardian" in victim:
            for pid in machine.guardians():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        for name, send in (("tool", os.kill), ("group", os.killpg)):
            if name in victim:
                try:
                    send(tool.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def once(self, machine, env, victim, moment):
        """What is wrong after one kill, whether something was set at it, and whether the next start had to restore."""
        shutil.rmtree(os.path.join(machine.folder, "t"), ignore_errors=True)
        tool = self.start_study(machine, env)
        time.sleep(moment)
        hit = bool(machine.differences())
        self.kill(victim, tool, machine)
        if victim != "guardian":
            tool.wait(timeout=60)
        else:
            tool.wait(timeout=120)
        if not wait_until(lambda: not machine.guardians(), 30):
            return ["the guardian does not end"], hit, False
        later = os.path.exists(machine.journal)
        if later:
            done = subprocess.run([TOOL, "control", "restore"], env=env, capture_output=True, text=True, timeout=60)
            if done.returncode:
                return [done.stderr], hit, later
        problems = machine.differences()
        finished = self.lines(machine, "ended")
        before = len(self.lines(machine, "started"))
        done = subprocess.run([TOOL, "study", "run", os.path.join(machine.folder, "t.toml"), "-o", os.path.join(machine.folder, "t")],
                              env=env, cwd=machine.folder, capture_output=True, text=True, timeout=120)
        if done.returncode:
            problems.append(f"going on ended with {done.returncode}: {done.stderr}")
        ended = self.lines(machine, "ended")
        if sorted(ended) != list(range(RUNS)):
            problems.append(f"runs that ended: {ended}")
        repeated = [run for run in self.lines(machine, "started")[before:] if run in finished]
        if repeated:
            problems.append(f"repeated: {repeated}")
        return problems + machine.differences(), hit, later

    def worker(self, number, kills, length):
        folder = os.path.join(self.dir, f"machine{number}")
        os.makedirs(folder)
        machine = Machine(folder, SLOW)
        with open(os.path.join(folder, "t.toml"), "w") as file:
            file.write(STUDY)
        env = self.env | machine.env
        numbers = random.Random(number)
        problems, hits, later = [], 0, 0
        for i in range(kills):
            victim, moment = VICTIMS[i % len(VICTIMS)], numbers.uniform(0, length)
            found, hit, restored = self.once(machine, env, victim, moment)
            hits += hit
            later += restored
            if found:
                problems.append(f"{number}.{i}: {victim} at {moment:.4f} s: {found}")
                break
        return problems, hits, later

    def test_every_setting_is_put_back_and_the_study_goes_on(self):
        folder = os.path.join(self.dir, "first")
        os.makedirs(folder)
        machine = Machine(folder, SLOW)
        with open(os.path.join(folder, "t.toml"), "w") as file:
            file.write(STUDY)
        begin = time.monotonic()
        self.assertEqual(self.start_study(machine, self.env | machine.env).wait(timeout=120), 0)
        length = 1.05 * (time.monotonic() - begin)
        self.assertEqual(machine.differences(), [])
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            share = [KILLS // WORKERS + (i < KILLS % WORKERS) for i in range(WORKERS)]
            results = list(pool.map(self.worker, range(WORKERS), share, [length] * WORKERS))
        hits, later = sum(r[1] for r in results), sum(r[2] for r in results)
        print(f"{KILLS} kills over {length:.3f} s: {hits} with something set, {later} restored by the next start")
        self.assertEqual([problem for result in results for problem in result[0]], [])
        # Otherwise the moments have missed what they are there for.
        self.assertGreater(hits, 0)


if __name__ == "__main__":
    unittest.main()
