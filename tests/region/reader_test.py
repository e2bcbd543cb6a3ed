"""read_run: runs into lists, or into pandas where it is installed."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
import warnings

import ergometer


def column(table, name):
    return [None if value != value else value for value in list(table[name])]


class ReaderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_dir = folder.name
        self.write("run.json", json.dumps({"schema": "ergometer.run/1", "exit_code": 7}))
        self.write("nodes/n/node.json", json.dumps({"schema": "ergometer.node/1", "hostname": "h"}))
        self.write(
            "nodes/n/regions.csv",
            "t_begin_ns,t_end_ns,pid,tid,rank,path,attributes\n1,2,3,4,,train,loss=0.5;a\\;b=c\\=d\\\\\n",
        )
        self.write("nodes/n/events.csv", 't_ns,source,kind,detail\n5,s,gap,"a, ""b"""\n')

    def write(self, name, text):
        path = os.path.join(self.run_dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def test_tables(self):
        self.write("nodes/n/samples/a.csv", "\ufefft_ns,power_w\r\n123456789012345678,1.5\r\n2,\r\n3,nan")
        run = ergometer.read_run(self.run_dir)
        self.assertEqual(run["run"]["exit_code"], 7)
        node = run["nodes"]["n"]
        self.assertEqual(node["node"]["hostname"], "h")
        self.assertEqual(column(node["samples"]["a"], "t_ns"), [123456789012345678, 2, 3])
        self.assertEqual(column(node["samples"]["a"], "power_w"), [1.5, None, None])
        self.assertEqual(column(node["regions"], "rank"), [None])
        self.assertEqual(list(node["regions"]["attributes"]), [{"loss": "0.5", "a;b": "c=d\\"}])
        self.assertEqual(list(node["events"]["detail"]), ['a, "b"'])

    def test_frames_and_damage(self):
        zstd = shutil.which("zstd")
        if not zstd:
            with self.assertRaises(ergometer.RunError):
                self.write("nodes/n/samples/b.csv.zst", b"x")
                ergometer.read_run(self.run_dir)
            return
        parts = [b"t_ns,power_w\n1,2\n", b"3,4\n", b"5,6\n"]
        frames = [subprocess.run([zstd, "-qc"], input=p, stdout=subprocess.PIPE, check=True).stdout for p in parts]
        self.write("nodes/n/samples/b.csv.zst", b"".join(frames))
        table = ergometer.read_run(self.run_dir)["nodes"]["n"]["samples"]["b"]
        self.assertEqual(column(table, "power_w"), [2, 4, 6])
        self.write("nodes/n/samples/b.csv.zst", b"".join(frames)[:-3])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = ergometer.read_run(self.run_dir)["nodes"]["n"]["samples"]["b"]
        self.assertEqual(column(table, "t_ns")[:2], [1, 3])
        self.assertIn("damaged or cut", str(caught[0].message))

    def test_refusals(self):
        with self.assertRaisesRegex(ergometer.RunError, "run.json is missing"):
            ergometer.read_run(os.path.join(self.run_dir, "none"))
        self.write("run.json", '{"schema": "other"}')
        with self.assertRaisesRegex(ergometer.RunError, "something else"):
            ergometer.read_run(self.run_dir)
        self.write("run.json", "")
        with self.assertRaisesRegex(ergometer.RunError, "cannot be read"):
            ergometer.read_run(self.run_dir)


if __name__ == "__main__":
    unittest.main()
