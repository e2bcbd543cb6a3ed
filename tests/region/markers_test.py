"""The Python markers, read back by the store's own reader (the program in ERGOMETER_DUMP_REGIONS)."""

import csv
import io
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

DUMP = os.environ["ERGOMETER_DUMP_REGIONS"]


class MarkersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def python(self, code, expect=0, **environment):
        """Runs `code` in an interpreter of its own, measured."""
        env = {k: v for k, v in os.environ.items() if k not in ("RANK", "PMI_RANK", "SLURM_PROCID")}
        env.update(ERGOMETER_RUN=self.folder.name, **environment)
        done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(code)], env=env, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, expect, done.stderr.decode())

    def regions(self):
        done = subprocess.run([DUMP, os.path.join(self.folder.name, "markers")], stdout=subprocess.PIPE, check=True)
        return list(csv.DictReader(io.StringIO(done.stdout.decode("utf-8"), newline="")))

    def paths(self):
        return [region["path"] for region in self.regions()]

    def test_nesting_attributes_and_decorator(self):
        self.python(
            """
            import ergometer
            @ergometer.region("step")
            def step(x):
                "doc"
                return x + 1
            assert step.__doc__ == "doc" and step.__name__ == "step"
            with ergometer.region("epoch", index=3) as epoch:
                assert step(1) == 2 and step(2) == 3
                epoch.set("loss", 0.25)
                epoch.set("samples", 64)
                epoch.set("note", "a;b=c")
                epoch.set("nan", float("nan"))
            """
        )
        regions = self.regions()
        self.assertEqual([r["path"] for r in regions], ["epoch[3]", "epoch[3]/step[0]", "epoch[3]/step[1]"])
        self.assertEqual(regions[0]["attributes"], "loss=0.25;samples=64;note=a\\;b\\=c")
        self.assertLessEqual(int(regions[2]["t_end_ns"]), int(regions[0]["t_end_ns"]))
        self.assertEqual(regions[0]["tid"], regions[0]["pid"])

    def test_begin_end_and_exceptions(self):
        self.python(
            """
            import ergometer
            a = ergometer.begin("a", 5)
            ergometer.number(a, "x", 1.5)
            ergometer.text(a, "y", "z")
            try:
                with ergometer.region("b"):
                    raise ValueError
            except ValueError:
                pass
            ergometer.end(a)
            ergometer.end(a)
            with ergometer.region("after"):
                pass
            """
        )
        self.assertEqual(self.paths(), ["a[5]", "a[5]/b", "after"])
        self.assertTrue(all("cut" not in r["attributes"] for r in self.regions()))

    def test_long_names_and_texts(self):
        self.python(
            """
            import ergometer
            with ergometer.region("n" * 500 + "/[é]\\n") as r:
                r.set("t", "v" * 5000)
                r.set("object", [1, 2])
            with ergometer.region("é" * 600):
                pass
            """
        )
        regions = self.regions()
        self.assertEqual(regions[0]["path"], "n" * 500 + "__é__")
        self.assertEqual(regions[0]["attributes"], "t=" + "v" * 4096 + ";object=[1, 2]")
        self.assertEqual(regions[1]["path"], "é" * 500)

    def test_threads(self):
        self.python(
            """
            import threading, ergometer
            step = ergometer.region("a step whose name needs two records")
            def work(i):
                with ergometer.region("worker", i):
                    for _ in range(3000):
                        with ergometer.region("step"):
                            pass
                    decorated()
            decorated = step(lambda: None)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
            """
        )
        paths = self.paths()
        self.assertEqual(len(paths), 4 * 3002)
        self.assertEqual(len(set(paths)), len(paths))
        self.assertIn("worker[3]/step[2999]", paths)
        self.assertIn("worker[2]/a step whose name needs two records", paths)

    def test_coroutines(self):
        self.python(
            """
            import asyncio, ergometer
            @ergometer.region("answer")
            async def answer():
                await asyncio.sleep(0)
                return 42
            async def main():
                assert await asyncio.gather(answer(), answer()) == [42, 42]
            asyncio.run(main())
            """
        )
        regions = self.regions()
        self.assertEqual(len(regions), 2)
        self.assertTrue(all("cut" not in r["attributes"] for r in regions))

    def test_fork(self):
        self.python(
            """
            import os, ergometer
            parent = ergometer.region("parent")
            with parent as p:
                child = os.fork()
                if child == 0:
                    p.set("from", "child")
                    with ergometer.region("child"):
                        pass
                    p.__exit__()
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            """
        )
        regions = self.regions()
        self.assertEqual([r["path"] for r in regions], ["parent", "child"])
        self.assertNotEqual(regions[0]["pid"], regions[1]["pid"])
        self.assertEqual(regions[1]["tid"], regions[1]["pid"])
        self.assertEqual(regions[0]["attributes"], "")
        self.assertGreaterEqual(int(regions[0]["t_end_ns"]), int(regions[1]["t_end_ns"]))

    def test_killed(self):
        self.python(
            """
            import os, signal, ergometer
            with ergometer.region("train"):
                with ergometer.region("epoch", 0):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            """,
            expect=-signal.SIGKILL,
        )
        regions = self.regions()
        self.assertEqual([r["path"] for r in regions], ["train", "train/epoch[0]"])
        self.assertEqual([r["attributes"] for r in regions], ["cut=true", ""])

    def test_inactive(self):
        code = """
            import ergometer
            with ergometer.region("x") as r:
                r.set("a", 1)
            assert ergometer.begin("y") == 0
            ergometer.end(0)
            assert ergometer.region("z")(lambda: 7)() == 7
            """
        for run in ("", os.path.join(self.folder.name, "missing")):
            self.python_with(run, code)
        self.assertEqual(os.listdir(self.folder.name), [])

    def python_with(self, run, code):
        env = dict(os.environ, ERGOMETER_RUN=run)
        subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(code)], env=env, check=True)

    def test_rank(self):
        self.python("import ergometer\nwith ergometer.region('x'): pass", RANK="2", SLURM_PROCID="5")
        self.assertEqual(self.regions()[0]["rank"], "5")


if __name__ == "__main__":
    unittest.main()
