"""Runs whose storage is slow or away for a while: the command is measured as ever, and nothing of its record is lost."""

from harness import *

SLOW_STORAGE = os.environ["SLOW_STORAGE"]


class Storage(CliTest):
    def setUp(self):
        super().setUp()
        self.write("fake.toml", SCENARIO)
        self.env |= {"LD_PRELOAD": SLOW_STORAGE, "SLOW_FOLDER": self.path("r"), "SLOW_STALL": self.path("away")}

    def measure(self, script):
        done = self.tool("run", "-o", self.path("r"), "--sensors", "fake=fake.toml", "--", "sh", "-c", script, text=True)
        self.assertEqual((done.returncode, done.stdout), (6, "out\n"), done.stderr)
        self.env.pop("LD_PRELOAD")
        return json.loads(self.tool("show", "--json", "r").stdout)

    def assert_whole(self, summary):
        """Each reading of the command's time is there: none was late by more than a few polls."""
        self.assertEqual(self.manifest("r")["state"], "complete")
        self.assertEqual([warning["code"] for warning in summary["warnings"] if warning["code"] != "no-gpu"], [])
        package, = (domain for domain in summary["nodes"][0]["domains"] if domain["domain"] == "package/0")
        self.assertAlmostEqual(package["coverage"], 1, places=2)
        self.assertAlmostEqual(package["energy_j"] / self.duration_s("r"), 100, delta=1)

    def test_each_operation_takes_its_time(self):
        self.env["SLOW_MS"] = "50"
        self.assert_whole(self.measure("sleep 1; echo out; exit 6"))

    def test_storage_that_is_away_holds_neither_the_command_nor_the_readings(self):
        self.assert_whole(self.measure("touch away; sleep 2; echo out; touch done; rm away; exit 6"))
        self.assertTrue(os.path.exists(self.path("done")))

    def test_storage_that_is_away_at_the_end_is_waited_for(self):
        tool = self.start("run", "-o", self.path("r"), "--sensors", "fake=fake.toml", "--", "sh", "-c", "touch away; exit 6")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("away"))))
        time.sleep(1)
        self.assertIsNone(tool.poll())
        os.remove(self.path("away"))
        self.assertEqual(tool.wait(20), 6)
        self.assertEqual(self.manifest("r")["state"], "complete")


if __name__ == "__main__":
    unittest.main()
