"""Controls through the daemon: SIGKILL at random moments, of the client, of its process group, of the daemon, and of the
daemon with its guardian. Afterwards, or when the next daemon has started, every setting is what it was.
ERGOMETER_KILLS=300 for a long one."""

import random

from control_world_of_users import *

KILLS = int(os.environ.get("ERGOMETER_KILLS", "28"))
VICTIMS = ("client", "group", "daemon", "daemon and guardian")


class Kills(UsersTest):
    def run_client(self):
        return subprocess.Popen(self.as_user(TOOL, "control", "set", *TOUCHING, "--", "sleep", "0.03"),
                                env=self.machine.user_env, cwd=self.machine.home, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, victim, client, daemon):
        if "guardian" in victim:
            for pid in self.machine.guardians():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        if "daemon" in victim:
            daemon.kill()
            daemon.wait()
        if "client" in victim:
            client.kill()
        if "group" in victim:
            try:
                os.killpg(client.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_every_setting_is_what_it_was(self):
        os.chmod(self.dir, 0o755)
        self.machine = self.make_machine(f"{self.dir}/slow", "write_ms = 3\n")
        daemon = self.start_daemon()
        begin = time.monotonic()
        self.assertEqual(self.run_client().wait(timeout=60), 0, self.log())
        length = 1.05 * (time.monotonic() - begin)
        self.wait_for_rest()
        numbers = random.Random(7)
        hits = 0
        for i in range(KILLS):
            victim = VICTIMS[i % len(VICTIMS)]
            client = self.run_client()
            time.sleep(numbers.uniform(0, length))
            hits += bool(self.machine.differences())
            self.kill(victim, client, daemon)
            if "daemon" in victim:
                client.wait(timeout=120)
                self.assertTrue(wait_until(lambda: not self.machine.guardians(), 60))
                daemon = self.start_daemon()
            client.wait(timeout=120)
            self.wait_for_rest()
        print(f"{KILLS} kills over {length:.3f} s: {hits} with something set")
        self.assertGreater(hits, 0)  # or the moments have missed what they are there for


if __name__ == "__main__":
    unittest.main()
