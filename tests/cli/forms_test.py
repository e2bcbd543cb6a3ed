"""ergometer import, compare and export in every form, the schemas of docs/schemas, and ergometer.load in Python."""

import sys

from show_test import *

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
GOLDEN = os.path.join(ROOT, "tests", "golden")

SMI = """timestamp, index, uuid, power.draw [W], utilization.gpu [%]
2024/01/31 13:45:12.000, 0, GPU-aa, 100.00 W, 50 %
2024/01/31 13:45:12.000, 1, GPU-bb, 50.00 W, 0 %
2024/01/31 13:45:13.000, 0, GPU-aa, 100.00 W, 50 %
2024/01/31 13:45:13.000, 1, GPU-bb, [N/A], 0 %
2024/01/31 13:45:14.000, 0, GPU-aa, 100.00 W, 50 %
2024/01/31 13:45:14.000, 1, GPU-bb, 50.00 W, 0 %
"""
ZEUS = """dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power
d,n,32,adam,100,20,90
d,n,32,adam,250,10,200
"""


def problems(value, schema, root, where="$"):
    """What the value breaks of a JSON Schema; the words that docs/schemas uses."""
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from problems(value, target, root, where)
        return
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    def fits(kind):
        if kind in ("number", "integer"):
            number = (int, float) if kind == "number" else int
            return isinstance(value, number) and not isinstance(value, bool)
        return isinstance(value, kinds[kind])
    if types and not any(fits(kind) for kind in types):
        yield f"{where} is no {' or '.join(types)}: {value!r}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of {schema['enum']}: {value!r}"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{where} lacks {key}"
        for key, entry in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if below is False:
                yield f"{where} has {key}, which the schema does not know"
            else:
                yield from problems(entry, below, root, f"{where}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, entry in enumerate(value):
            yield from problems(entry, schema["items"], root, f"{where}[{i}]")


class FormsTest(RunsTest):
    def golden(self, name, text):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("ERGOMETER_UPDATE_GOLDEN"):
            with open(path, "w") as file:
                file.write(text)
            return
        with open(path) as file:
            self.assertEqual(text, file.read(), f"{path} says otherwise (ERGOMETER_UPDATE_GOLDEN=1 writes it anew)")

    def conforms(self, value, name):
        with open(os.path.join(ROOT, "docs", "schemas", name + ".schema.json")) as file:
            schema = json.load(file)
        self.assertEqual(list(problems(value, schema, schema)), [])


class Import(FormsTest):
    def test_nvidia_smi_becomes_a_run(self):
        self.write("smi.csv", SMI)
        out = self.good("import", "smi.csv", "-o", "r")
        self.assertIn("6 readings of 2 sensors (nvidia-smi CSV)", out)
        summary = strict_json(self.good("show", "r", "--json"))
        domains = {d["domain"]: d for d in summary["nodes"][0]["domains"]}
        self.assertAlmostEqual(domains["gpu/0"]["energy_j"], 200, delta=1)
        self.assertAlmostEqual(domains["gpu/1"]["energy_j"], 100, delta=1)
        self.assertAlmostEqual(summary["run"]["duration_s"], 2)
        self.assertIn("import-zone", [w["code"] for w in summary["warnings"]])
        self.refused("import", "smi.csv", "-o", "r", says=["r"])

    def test_zeus_becomes_a_study(self):
        self.write("a.csv", ZEUS)
        self.write("b.csv", ZEUS)
        self.assertIn("a study of 2 runs in 2 cells", self.good("import", "a.csv", "-o", "s"))
        self.conforms(json.loads(self.read("s/table.json")), "study-table")
        self.assertIn("a study of 4 runs", self.good("import", "a.csv", "b.csv", "-o", "both"))
        rows = list(csv.DictReader(io.StringIO(self.good("export", "both", "--format", "csv"))))
        self.assertEqual([(r["file"], r["power_limit"], r["energy_per_epoch_j"]) for r in rows],
                         [("a", "100W", "1800"), ("a", "250W", "2000"), ("b", "100W", "1800"), ("b", "250W", "2000")])
        tex = self.good("export", "s", "--format", "latex")
        self.assertIn("100W & 1 & $20.00$ & $90.00$ & $1800$", tex)
        bench = strict_json(self.good("export", "s", "--format", "github-benchmark"))
        self.assertIn({"name": "100W: energy per epoch", "unit": "J", "value": 1800.0, "extra": "1 run"}, bench)
        self.refused("export", "s", "--format", "perfetto", says=["a study cannot be exported as perfetto"])
        self.refused("import", "a.csv", "-o", "s", says=["holds something already"])

    def test_what_is_refused(self):
        self.write("smi.csv", SMI)
        self.write("zeus.csv", ZEUS)
        self.write("other.csv", "a,b\n1,2\n")
        self.write("empty.csv", "")
        with open(self.path("binary.h5"), "wb") as file:
            file.write(b"\x89HDF\r\n\x1a\n\x00\x00")
        self.refused("import", "absent.csv", says=["absent.csv"])
        self.refused("import", "other.csv", says=["other.csv is of no known form", "a, b", "nvidia-smi"])
        self.refused("import", "empty.csv", says=["empty.csv is empty"])
        self.refused("import", "binary.h5", says=["binary.h5", "HDF5", "sh5util"])
        self.refused("import", "smi.csv", "zeus.csv", says=["import them apart"])
        self.refused("import", "smi.csv", "--dates", "ymd", says=["dmy or mdy"])
        self.refused("import", says=["FILE"])
        self.assertFalse(os.path.exists(self.path("runs")), "nothing is made of what is refused")

    def test_supercloud_there_and_back(self):
        self.write("smi.csv", SMI)
        self.good("import", "smi.csv", "-o", "r")
        self.good("export", "r", "--format", "supercloud", "-o", "cloud.csv")
        self.assertIn("Supercloud GPU CSV", self.good("import", "cloud.csv", "-o", "again"))
        first, second = (strict_json(self.good("show", run, "--json")) for run in ("r", "again"))
        self.assertAlmostEqual(first["run"]["energy_j"], second["run"]["energy_j"])


class Compare(FormsTest):
    def test_golden(self):
        self.by_hand("a")
        self.by_hand("b", gpu_w=150)
        self.by_hand("same")
        text = self.good("compare", "a", "b", "same", "--width", "100")
        self.golden("compare.txt", text)
        self.assertIn("b uses 20.0 % less energy than a", text)

    def test_json(self):
        self.by_hand("a")
        self.by_hand("b", gpu_w=150)
        comparison = strict_json(self.good("compare", "a", "b", "--json"))
        self.conforms(comparison, "comparison")
        energy = next(c for c in comparison["comparisons"] if c["quantity"] == "energy")
        self.assertAlmostEqual(energy["difference"], -0.2, places=3)
        self.assertEqual((energy["regions"]["family"], energy["regions"]["pairs"]), ("train/epoch", 2))
        sample = next(c for c in comparison["comparisons"] if c["quantity"] == "energy per sample")
        self.assertAlmostEqual(sample["difference"], -0.2, places=3)

    def test_runs_that_are_not_alike(self):
        self.by_hand("a")
        self.by_hand("b", exit_code=3)
        os.remove(self.path("b/nodes/n/samples/gpu0.csv"))
        text = self.good("compare", "a", "b")
        self.assertIn("the totals are not alike", text)
        self.assertIn("b ended with exit code 3", text)

    def test_run_without_sensors(self):
        self.by_hand("a")
        self.by_hand("b")
        for name in "gpu0", "package0":
            os.remove(self.path(f"b/nodes/n/samples/{name}.csv"))
        text = self.good("compare", "a", "b")
        self.assertIn("b has no measured energy", text)
        energies = [c for c in strict_json(self.good("compare", "a", "b", "--json"))["comparisons"]
                    if c["quantity"] == "energy"]
        self.assertEqual(energies, [])

    def test_runs_of_one_name_are_told_apart(self):
        self.by_hand("a", name="x")
        self.by_hand("b", name="x", gpu_w=150)
        self.assertIn("b uses 20.0 % less energy than a", self.good("compare", "a", "b"))

    def test_what_is_refused(self):
        self.by_hand("a")
        self.write("zeus.csv", ZEUS)
        self.good("import", "zeus.csv", "-o", "s")
        self.refused("compare", "a", says=["two runs"])
        self.refused("compare", "a", "absent", says=["absent"])
        self.refused("compare", "a", "s", says=["s is a study"])


class Exports(FormsTest):
    def test_summary_conforms_to_its_schema(self):
        self.by_hand("r")
        self.conforms(strict_json(self.good("show", "r", "--json")), "summary")

    def test_perfetto(self):
        clocks = [{"mono_ns": 0, "wall_ns": 1700000000 * 10**9}]
        self.by_hand("r", clocks=clocks)
        events = strict_json(self.good("export", "r", "--format", "perfetto"))["traceEvents"]
        power = [e for e in events if e["ph"] == "C" and e["name"] == "gpu/0 power_w"]
        self.assertEqual(len(power), 26)
        self.assertEqual(power[1]["args"], {"W": 200})
        self.assertEqual(power[1]["ts"], 1700000000500000.0)
        counter = [e for e in events if e["ph"] == "C" and e["name"] == "package/0 power from energy_j"]
        self.assertEqual({e["args"]["W"] for e in counter}, {50})
        epoch = next(e for e in events if e["ph"] == "X" and e["name"] == "epoch[1]")
        self.assertEqual((epoch["ts"], epoch["dur"]), (1700000006000000.0, 5000000.0))

    def test_perfetto_beside_a_pytorch_trace(self):
        """The profiler's own events keep their place; ours lie on its clock, which begins at its base."""
        self.by_hand("r", clocks=[{"mono_ns": 0, "wall_ns": 1700000000 * 10**9}])
        op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 3000000.0, "dur": 10.0}
        self.write("torch.json", json.dumps({"schemaVersion": 1, "traceEvents": [op],
                                             "baseTimeNanoseconds": 1700000000 * 10**9, "traceName": "t"}))
        merged = strict_json(self.good("export", "r", "--format", "perfetto", "--torch-trace", "torch.json"))
        self.assertEqual(merged["traceName"], "t")
        self.assertEqual([e for e in merged["traceEvents"] if e["name"] == "aten::mm"], [op])
        forward = next(e for e in merged["traceEvents"] if e["name"] == "forward")
        self.assertEqual(forward["ts"], 1000000.0)
        self.assertLess(forward["ts"], op["ts"] + 1)
        self.write("empty.json", '{"traceEvents": [ ]}')
        strict_json(self.good("export", "r", "--format", "perfetto", "--torch-trace", "empty.json"))
        self.write("bad.json", '{"traceEvents": 5}')
        self.refused("export", "r", "--format", "perfetto", "--torch-trace", "bad.json", "-o", "out.json",
                     says=["bad.json is no trace"])
        self.assertFalse(os.path.exists(self.path("out.json")))
        self.refused("export", "r", "--format", "perfetto", "--torch-trace", "torch.json", "-o", "torch.json",
                     says=["is the input itself"])
        self.refused("export", "r", "--format", "csv", "--torch-trace", "torch.json", says=["--format perfetto"])

    def test_forms_of_a_run_without_sensors(self):
        self.write("r/run.json", json.dumps({"schema": "ergometer.run/1", "name": "<b>'\"\u202e\U0001F525", "nodes": ["n"],
                                             "begin_ns": 0, "end_ns": 10**9}))
        os.makedirs(self.path("r/nodes/n/samples"))
        self.assertIn("& $1.000$ & -- & --", self.good("export", "r", "--format", "latex"))
        self.assertNotIn("joules", self.good("export", "r", "--format", "openmetrics"))
        self.assertEqual([e["unit"] for e in strict_json(self.good("export", "r", "--format", "github-benchmark"))], ["s"])
        strict_json(self.good("export", "r", "--format", "perfetto"))
        self.refused("export", "r", "--format", "supercloud", says=["no GPU with power"])

    def test_a_folder_that_is_not_there(self):
        self.by_hand("r")
        for words in (("export", "r", "--format", "csv", "-o", "no/r.csv"), ("report", "r", "-o", "no/r.html")):
            self.refused(*words, says=["there is no folder ", "/no\n", "make it, or name another file with -o"])

    def test_unknown_format(self):
        self.by_hand("r")
        self.refused("export", "r", "--format", "openmetric", says=['did you mean "openmetrics"?'])
        self.refused("export", "r", "--format", "qqq", says=["csv, json, latex"])


class Pictures(FormsTest):
    def test_power_over_time(self):
        self.by_hand("r")
        text = self.good("show", "r")
        self.assertIn("Power over time", text)
        self.assertRegex(text, "gpu/0 +█+  highest 200.0 W")
        self.assertRegex(text, "package/0 +█+  highest 50.00 W")

    def test_f130_no_last_value_stands_for_the_run(self):
        """The last reading before the end is idle: mean and picture are of the whole run."""
        self.by_hand("r")
        times = range(0, 13 * 10**9, 5 * 10**8)
        self.write("r/nodes/n/samples/gpu0.csv",
                   "t_ns,power_w\n" + "".join(f"{t},{200 if t < 105 * 10**8 else 20}\n" for t in times))
        summary = strict_json(self.good("show", "r", "--json"))
        gpu = next(d for d in summary["nodes"][0]["domains"] if d["domain"] == "gpu/0")
        self.assertGreater(gpu["mean_power_w"], 180)
        self.assertIn("highest 200.0 W", self.good("show", "r"))

    def test_f128_one_sample_or_none(self):
        self.write("r/run.json", json.dumps({"schema": "ergometer.run/1", "nodes": ["n"], "begin_ns": 0, "end_ns": 10**9}))
        self.write("r/nodes/n/samples/package0.csv", "t_ns,energy_j\n5,1\n")
        self.assertIn("no GPU data", self.good("show", "r"))
        self.good("compare", "r", "r")


class Load(FormsTest):
    def setUp(self):
        super().setUp()
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        import ergometer
        self.ergometer = ergometer

    def loaded(self):
        self.by_hand("r")
        self.write("r/summary.json", self.good("show", "r", "--json"))
        return self.ergometer.load(self.path("r"))

    def test_frames_of_a_run(self):
        run = self.loaded()
        self.assertEqual(sorted(run.samples), ["gpu0", "package0"])
        gpu = run.samples["gpu0"]
        self.assertEqual((gpu["t_s"].iloc[0], gpu["power_w"].iloc[0]), (-1.0, 200))
        epochs = run.regions[run.regions["name"] == "epoch"]
        self.assertEqual(list(epochs["index"]), [0, 1])
        self.assertEqual(list(epochs["samples"]), [100, 100])
        whole = run.summary[(run.summary["region"] == "") & run.summary["in_total"]]
        self.assertAlmostEqual(whole["energy_j"].sum(), 2500, delta=1)

    def test_frames_of_a_study(self):
        self.write("zeus.csv", ZEUS)
        self.good("import", "zeus.csv", "-o", "s")
        study = self.ergometer.load(self.path("s"))
        self.assertEqual(list(study.runs["power_limit"]), [100, 250])
        self.assertEqual(list(study.runs["energy_per_epoch_j"]), [1800, 2000])

    def test_summary_is_none_where_it_was_removed(self):
        self.by_hand("r")
        self.assertIsNone(self.ergometer.load(self.path("r")).summary)

    def test_notebook_runs(self):
        self.loaded()
        with open(os.path.join(ROOT, "docs", "examples", "read_a_run.ipynb")) as file:
            notebook = json.load(file)
        os.environ["RUN"] = self.path("r")
        self.addCleanup(os.environ.pop, "RUN")
        names = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
        self.assertAlmostEqual(names["table"].loc["train", "mean_power_w"], 250, delta=1)


class LoadWithoutPandas(FormsTest):
    def test_says_what_to_install(self):
        self.by_hand("r")
        program = ("import sys; sys.modules['pandas'] = None; sys.path.insert(0, %r); import ergometer\n"
                   "try: ergometer.load(%r)\nexcept ergometer.RunError as e: print(e)" %
                   (os.path.join(ROOT, "python"), self.path("r")))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertIn("pip install pandas", done.stdout, done.stderr)


for name in [n for n, v in list(globals().items()) if isinstance(v, type) and issubclass(v, CliTest)
             and v.__module__ == "show_test"]:
    del globals()[name]

if __name__ == "__main__":
    unittest.main()
