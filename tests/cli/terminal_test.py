"""ergometer run on a terminal: Ctrl-C, Ctrl-Z and fg, the live line."""

from harness import *


class OnATerminal(CliTest):
    def setUp(self):
        super().setUp()
        self.write("fake.toml", SCENARIO)
        self.env["TERM"] = "xterm"

    def terminal(self, *arguments, size=(24, 80)):
        return Terminal([TOOL, "run", "-o", "r", "--sensors", "fake=fake.toml", *arguments], self.dir, self.env, size)

    def test_ctrl_c(self):
        counting = ("import signal, time, sys\nn = 0\n"
                    "def seen(*_):\n    global n\n    n += 1\n"
                    "signal.signal(signal.SIGINT, seen)\nprint('ready', flush=True)\n"
                    "end = time.time() + 1.5\nwhile time.time() < end: time.sleep(0.05)\n"
                    "print('seen', n, flush=True)\nsys.exit(9)")
        terminal = self.terminal("--", sys.executable, "-c", counting)
        terminal.read(b"ready")
        time.sleep(0.2)
        terminal.send(b"\x03")
        self.assertEqual(terminal.wait(), 9)
        self.assertIn(b"seen 1", terminal.output, "the terminal's signal must reach the command once")
        self.assertEqual(self.manifest("r")["state"], "complete")

    def test_ctrl_c_ends_command_and_report_follows(self):
        terminal = self.terminal("--", "sh", "-c", "echo ready; exec sleep 100")
        terminal.read(b"ready")
        time.sleep(0.2)
        terminal.send(b"\x03")
        self.assertEqual(terminal.wait(), 130)
        self.assertIn(b"run: r", terminal.output)

    def test_standard_input_of_the_terminal(self):
        terminal = self.terminal("--", "sh", "-c", "echo ready; read word; echo got $word")
        terminal.read(b"ready")
        terminal.send(b"hello\n")
        self.assertEqual(terminal.wait(), 0)
        self.assertIn(b"got hello", terminal.output)

    def test_live_line(self):
        terminal = self.terminal("--", "sleep", "2.2", size=(24, 40))
        self.assertEqual(terminal.wait(), 0)
        frames = [f for f in terminal.output.split(b"\x1b[K")[:-1] if b"package/0" in f and b" W" in f]
        self.assertGreaterEqual(len(frames), 3)
        line = frames[-1].split(b"\r")[-1]
        self.assertRegex(line, rb"^0:0\d  package/0 \d+ W  \d+ J$")
        self.assertTrue(all(len(f.split(b"\r")[-1]) < 40 for f in frames))
        # Erased before the summary.
        self.assertIn(b"\r\x1b[K", terminal.output[terminal.output.rindex(line):])

    def test_no_live_line_when_quiet(self):
        terminal = self.terminal("--quiet", "--", "sleep", "1.2")
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn(b"\x1b[K", terminal.output)

    def test_ctrl_z_and_fg(self):
        self.env["PS1"] = "PROMPT> "
        shell = Terminal(["bash", "--norc", "--noprofile", "-i"], self.dir, self.env)
        shell.read(b"PROMPT> ")
        shell.send(f"{TOOL} run -o r --sensors fake=fake.toml -- sh -c 'echo rea''dy; sleep 1; exit 6'\n".encode())
        shell.read(b"ready\r\n")
        time.sleep(0.3)
        shell.send(b"\x1a")
        self.assertIn(b"Stopped", shell.read(b"Stopped"))
        shell.read(b"PROMPT> ")
        shell.send(b"jobs\n")
        self.assertIn(b"Stopped", shell.read(b"PROMPT> "))
        time.sleep(0.5)
        shell.send(b"fg\n")
        self.assertIn(b"run: r", shell.read(b"run: r"))
        shell.read(b"PROMPT> ")
        shell.send(b"echo co''de=$?\n")
        self.assertIn(b"code=6", shell.read(b"code=6"))
        shell.send(b"exit\n")
        shell.wait()

    def test_background_job(self):
        self.env["PS1"] = "PROMPT> "
        shell = Terminal(["bash", "--norc", "--noprofile", "-i"], self.dir, self.env)
        shell.read(b"PROMPT> ")
        shell.send(f"{TOOL} run -o r --sensors fake=fake.toml -- sleep 1.5 &\n".encode())
        shell.read(b"PROMPT> ")
        output = shell.read(b"run: r")
        self.assertNotIn(b"\x1b[K", output, "no live line from the background")
        shell.send(b"exit\n")
        shell.wait()


if __name__ == "__main__":
    unittest.main()
