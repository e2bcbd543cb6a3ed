"""Runs every command of docs/cluster.md on a real Slurm, in its order: lines with sudo as root, the others as an ordinary user. What
cannot be as on a site stands in SUBSTITUTES."""

import re
import subprocess

from slurm_world import *

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "cluster.md")


class Document(SlurmTest):
    options = {"accounting": True}

    def substitutes(self):
        """What the document says, and what stands for it here."""
        return {
            # The package is not installed on the machine that tests it: what it would bring lies in the build folder.
            "sudo apt-get install ./ergometer_0.1.0_amd64.deb": f"sudo test -x {TOOL} -a -f {PLUGIN}",
            "optional /usr/lib/ergometer/ergometer_spank.so": f"optional {PLUGIN} program={TOOL} host_root={self.folder}/roots/%n jobs=off",
            "/etc/slurm/plugstack.conf": self.cluster.path("plugstack.conf"),
        }

    def test_every_command_works(self):
        # As on a site that has no plugin yet.
        with open(self.cluster.path("plugstack.conf"), "w"):
            pass
        os.makedirs(f"{self.folder}/bin", exist_ok=True)
        os.symlink(TOOL, f"{self.folder}/bin/ergometer")
        with open(f"{self.folder}/bin/sudo", "w") as file:
            file.write('#!/bin/sh\nexec "$@"\n')
        os.chmod(f"{self.folder}/bin/sudo", 0o755)
        path = {"PATH": f"{self.folder}/bin:{self.cluster.env['PATH']}"}
        with open(DOCUMENT) as file:
            blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.M | re.S)
        commands = [line for block in blocks for line in block.splitlines() if line.strip()]
        self.assertGreaterEqual(len(commands), 8)
        used, outputs = set(), []
        for command in commands:
            for said, here in self.substitutes().items():
                if said in command:
                    used.add(said)
                    command = command.replace(said, here)
            with self.subTest(command=command):
                if "sacct" in command:  # the accounting hears of a job a moment after its end
                    self.assertTrue(wait_until(lambda: "COMPLETED" in self.as_user("sacct", "--noheader", "--allocations", "--format=State").stdout.split()[-1:]))
                if "sudo" in command:
                    done = subprocess.run(["bash", "-c", command], env=os.environ | self.cluster.env | path, capture_output=True, text=True, timeout=120)
                else:
                    done = self.as_user("bash", "-c", command, env=path)
                self.ok(done)
                outputs.append(done.stdout)
        self.assertEqual(used, set(self.substitutes()))
        first = outputs[commands.index(next(c for c in commands if c.startswith("ergometer job $")))]
        for node in ("n1", "n2", "n3"):
            self.assertRegex(first, rf"{node} +package/0 +[0-9.]+ k?J")
        self.assertIn("reported by Slurm: not available", first)


if __name__ == "__main__":
    unittest.main()
