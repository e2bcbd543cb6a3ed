"""ergometer run --epoch-regex: regions from printed lines, with the streams passed on byte for byte."""

from harness import *

PRINT = "for i in 0 1 2; do echo Epoch $i begins; sleep 0.1; done; echo end"


class Epochs(CliTest):
    def epochs(self, run="r"):
        rows = [r for r in self.table(run, "regions.csv") if r["path"].startswith("epoch")]
        return [(r["path"], int(r["t_begin_ns"]), int(r["t_end_ns"])) for r in rows]

    def test_line_begins_an_epoch(self):
        done = self.tool("run", "-o", "r", "--epoch-regex", "Epoch ([0-9]+)", "--", "sh", "-c", PRINT)
        self.assertEqual(done.stdout, b"Epoch 0 begins\nEpoch 1 begins\nEpoch 2 begins\nend\n")
        epochs = self.epochs()
        self.assertEqual([e[0] for e in epochs], ["epoch[0]", "epoch[1]", "epoch[2]"])
        self.assertEqual(epochs[0][2], epochs[1][1])
        self.assertEqual(epochs[1][2], epochs[2][1])
        self.assertAlmostEqual(epochs[2][2], self.manifest("r")["end_ns"], delta=50e6)
        for _, begin, end in epochs:
            self.assertGreaterEqual(end - begin, 90e6)

    def test_line_ends_an_epoch(self):
        script = "sleep 0.1; for i in 5 6; do sleep 0.1; echo done $i; done; sleep 0.2"
        self.tool("run", "-o", "r", "--epoch-at", "end", "--epoch-regex", "^done ([0-9]+)", "--", "sh", "-c", script)
        epochs = self.epochs()
        self.assertEqual([e[0] for e in epochs], ["epoch[5]", "epoch[6]"])
        self.assertAlmostEqual(epochs[0][1], self.manifest("r")["begin_ns"], delta=50e6)
        self.assertEqual(epochs[0][2], epochs[1][1])
        self.assertGreaterEqual(epochs[0][2] - epochs[0][1], 190e6)
        self.assertLess(epochs[1][2], self.manifest("r")["end_ns"] - 150e6)

    def test_counted_without_a_number(self):
        self.tool("run", "-o", "r", "--epoch-regex", "begins", "--", "sh", "-c", PRINT)
        self.assertEqual([e[0] for e in self.epochs()], ["epoch[0]", "epoch[1]", "epoch[2]"])

    def test_progress_bar_on_standard_error(self):
        bar = "printf 'Epoch 1: 10%%\\rEpoch 1: 60%%\\rEpoch 1: 100%%\\nEpoch 2: 10%%\\rEpoch 2: 100%%' >&2"
        done = self.tool("run", "-o", "r", "--quiet", "--epoch-regex", "Epoch (\\d+)", "--", "sh", "-c", bar)
        self.assertIn(b"Epoch 1: 10%\rEpoch 1: 60%\rEpoch 1: 100%\nEpoch 2: 10%\rEpoch 2: 100%", done.stderr)
        self.assertEqual([e[0] for e in self.epochs()], ["epoch[1]", "epoch[2]"])

    def test_much_output_untouched(self):
        data = os.urandom(3_000_000)
        with open(self.path("data"), "wb") as file:
            file.write(data)
        done = self.tool("run", "--epoch-regex", "Epoch", "--", "sh", "-c", "cat data; exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stdout, data)

    def test_closed_reader_ends_the_command(self):
        shell = f"{TOOL} run --quiet --epoch-regex x -- yes | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], cwd=self.dir, env=self.env, capture_output=True, timeout=30)
        self.assertEqual((done.stdout, done.returncode), (b"y\n", 128 + signal.SIGPIPE))

    def test_background_child_keeps_its_output(self):
        script = "(sleep 0.7; echo late) & echo early"
        done = self.tool("run", "-o", "r", "--epoch-regex", "x", "--", "sh", "-c", script)
        self.assertEqual(done.stdout, b"early\nlate\n")
        self.assertLess(self.duration_s("r"), 0.5)

    def test_bad_expression(self):
        for pattern, place in ("Epoch (", b"at character 7"), ("ab[c", b"at character 3"), ("+a", b"at character 1"):
            with self.subTest(pattern):
                done = self.tool("run", "--epoch-regex", pattern, "--", "touch", "ran")
                self.assertEqual(done.returncode, 2)
                self.assertIn(place, done.stderr)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_on_a_terminal(self):
        script = ("import os, sys; print(os.isatty(0), os.isatty(1), os.isatty(2), os.get_terminal_size(1).columns);"
                  "print('Epoch 4')")
        terminal = Terminal([TOOL, "run", "--quiet", "-o", "r", "--epoch-regex", "Epoch (.*)", "--", sys.executable,
                             "-c", script], self.dir, self.env, (24, 77))
        self.assertEqual(terminal.wait(), 0)
        self.assertIn(b"True True True 77\r\nEpoch 4\r\n", terminal.output)
        self.assertEqual([e[0] for e in self.epochs()], ["epoch[4]"])

    def test_killed_tool_leaves_the_epochs(self):
        tool = self.start("run", "-o", "r", "--epoch-regex", "Epoch (.*)", "--", "sh", "-c",
                          "echo Epoch 0; sleep 0.2; echo Epoch 1; touch ready; exec sleep 2")
        self.assertTrue(wait_until(lambda: os.path.exists(self.path("ready"))))
        time.sleep(0.2)
        tool.kill()
        tool.wait()
        shown = json.loads(self.tool("show", "r", "--json").stdout)
        epochs = [r for r in shown["regions"] if r["name"] == "epoch"]
        self.assertEqual([e["index"] for e in epochs], [0, 1])


if __name__ == "__main__":
    unittest.main()
