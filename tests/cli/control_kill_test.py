"""ergometer control: SIGKILL at 300 random moments, of the tool, its process group, its guardian and both. Afterwards, or
after the next start has restored, every setting is what it was."""

import concurrent.futures
import random

from control_world import *

KILLS = int(os.environ.get("ERGOMETER_KILLS", "300"))
WORKERS = 4
# Every write takes some milliseconds, so that kills fall into it.
SLOW = "write_ms = 3\n"
VICTIMS = ("tool", "group", "guardian", "tool and guardian", "group and guardian")


def run(machine, env):
    return subprocess.Popen([TOOL, "control", "set", *TOUCHING, "--", "sleep", "0.03"], env=env, start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(victim, tool, machine):
    # Guardians first: the tool's death is what wakes them.
    if "guardian" in victim:
        for pid in machine.guardians():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    if "tool" in victim:
        tool.kill()
    if "group" in victim:
        try:
            os.killpg(tool.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Kills(InMemoryTest):
    def worker(self, number, kills, length):
        """Problems, and how many kills found something set."""
        folder = os.path.join(self.dir, f"machine{number}")
        os.makedirs(folder)
        machine = Machine(folder, SLOW)
        env = self.env | machine.env
        random_numbers = random.Random(number)
        problems, hits, restored_later = [], 0, 0
        for i in range(kills):
            victim = VICTIMS[i % len(VICTIMS)]
            moment = random_numbers.uniform(0, length)
            tool = run(machine, env)
            time.sleep(moment)
            hits += bool(machine.differences())
            kill(victim, tool, machine)
            tool.wait(timeout=60)
            if not wait_until(lambda: not machine.guardians(), 30):
                problems.append(f"{i}: {victim} at {moment:.4f} s: the guardian does not end")
            if os.path.exists(machine.journal):
                restored_later += 1
                done = subprocess.run([TOOL, "control", "restore"], env=env, capture_output=True, text=True, timeout=60)
                if done.returncode != 0:
                    problems.append(f"{i}: {victim} at {moment:.4f} s: {done.stderr}")
            left = machine.differences()
            if left or os.path.exists(machine.journal):
                problems.append(f"{i}: {victim} at {moment:.4f} s: {left}")
                return problems, hits, restored_later
        return problems, hits, restored_later

    def test_every_setting_is_what_it_was(self):
        # The moments cover a whole run, from its start to after its end.
        machine = Machine(os.path.join(self.dir, "first"), SLOW)
        begin = time.monotonic()
        self.assertEqual(run(machine, self.env | machine.env).wait(timeout=60), 0)
        length = 1.05 * (time.monotonic() - begin)
        self.assertEqual(machine.differences(), [])
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            share = [KILLS // WORKERS + (i < KILLS % WORKERS) for i in range(WORKERS)]
            results = list(pool.map(self.worker, range(WORKERS), share, [length] * WORKERS))
        problems = [problem for result in results for problem in result[0]]
        hits, later = sum(r[1] for r in results), sum(r[2] for r in results)
        print(f"{KILLS} kills over {length:.3f} s: {hits} with something set, {later} restored by the next start")
        self.assertEqual(problems, [])
        # Otherwise the moments have missed what they are there for.
        self.assertGreater(hits, KILLS // 10)
        self.assertGreater(later, 0)


if __name__ == "__main__":
    unittest.main()
