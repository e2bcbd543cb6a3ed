"""The command line itself: unknown words, settings, help."""

from harness import *


class Usage(CliTest):
    def refused(self, *arguments, says=(), code=2):
        done = self.tool(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(self.path("ran")), "the command must not start")

    def test_unknown_option(self):
        self.refused("run", "--intervall", "1s", "--", "touch", "ran", says=[b"--intervall", b"did you mean --interval?"])

    def test_unknown_command(self):
        self.refused("rnu", "--", "touch", "ran", says=[b'"rnu"', b'did you mean "run"?'])

    def test_unknown_sensor(self):
        self.refused("run", "--sensors", "nvlm", "--", "touch", "ran", says=[b"nvlm", b'"nvml"'])
        self.refused("run", "--require", "rpal", "--", "touch", "ran", says=[b"rpal", b'"rapl"'])

    def test_required_sensor_is_missing(self):
        self.refused("--nvml", "/no/such/libnvidia-ml.so.1", "run", "--require", "nvml", "--", "touch", "ran",
                     says=[b'"nvml"'], code=3)

    def test_required_sensor_is_there(self):
        self.write("fake.toml", SCENARIO)
        for name in "package/0", "package", "fake":
            done = self.tool("run", "--sensors", "fake=fake.toml", "--require", name, "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_bad_values(self):
        self.refused("run", "--interval", "5", "--", "touch", "ran", says=[b"100ms"])
        self.refused("run", "--interval", "0s", "--", "touch", "ran", says=[b"1ms"])
        self.refused("run", "--idle-before", "soon", "--", "touch", "ran", says=[b"soon"])
        self.refused("run", "--epoch-at", "middle", "--", "touch", "ran", says=[b"middle"])
        self.refused("run", "--cpu-tdp", "-3", "--", "touch", "ran", says=[b"--cpu-tdp"])

    def test_command_without_dashes(self):
        self.refused("run", "touch", "ran", says=[b"run [OPTIONS] -- COMMAND"])
        self.refused("run", says=[b"-- COMMAND"])
        self.refused("run", "--", says=[b"-- COMMAND"])

    def test_options_of_the_command_are_its_own(self):
        done = self.tool("run", "--", "echo", "--help", "--", "-x")
        self.assertEqual(done.stdout, b"--help -- -x\n")

    def test_help_and_version(self):
        for arguments in ["--help"], ["run", "--help"]:
            done = self.tool(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertIn(b"Examples:", done.stdout)
        self.assertRegex(self.tool("--version").stdout, rb"^ergometer \d+\.\d+\.\d+\n$")

    def test_no_command(self):
        self.refused(says=[b"ergometer"])


class Settings(CliTest):
    def name(self, *arguments):
        done = self.tool("run", "-o", "r", *arguments, "--sensors", "procfs", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        name = self.manifest("r")["name"]
        shutil.rmtree(self.path("r"))
        return name

    def test_order(self):
        self.write(".config/ergometer/ergometer.toml", 'name = "home"\n')
        home = self.name()
        self.write("ergometer.toml", 'name = "folder"\nidle-after = "1ms"\n')
        folder = self.name()
        self.env["ERGOMETER_NAME"] = "variable"
        variable = self.name()
        option = self.name("--name", "option")
        self.assertEqual([home, folder, variable, option], ["home", "folder", "variable", "option"])

    def test_unknown_key(self):
        self.write("ergometer.toml", '# mine\nintervall = "1s"\n')
        done = self.tool("run", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'ergometer.toml:2: unknown setting "intervall"', done.stderr)
        self.assertIn(b'"interval"', done.stderr)

    def test_bad_value(self):
        self.write("ergometer.toml", 'interval = "often"\n')
        done = self.tool("run", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"ergometer.toml", done.stderr)
        self.assertIn(b"often", done.stderr)

    def test_no_toml(self):
        self.write("ergometer.toml", "interval = = 3\n")
        done = self.tool("run", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"ergometer.toml:1", done.stderr)

    def test_list_and_flag(self):
        self.write("fake.toml", SCENARIO)
        self.write("ergometer.toml", 'sensors = ["procfs", "fake=fake.toml"]\nquiet = true\nstore = "kept"\n')
        done = self.tool("run", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(len(os.listdir(self.path("kept"))), 1)

    def test_misspelt_variable(self):
        self.env["ERGOMETER_INTREVAL"] = "1s"
        done = self.tool("run", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"did you mean ERGOMETER_INTERVAL?", done.stderr)

    def test_foreign_variable(self):
        self.env["ERGOMETER_SOMETHING_ELSE"] = "1"
        self.env["ERGOMETER_BIN"] = "1"
        self.assertEqual(self.tool("run", "--", "true").returncode, 0)


if __name__ == "__main__":
    unittest.main()
