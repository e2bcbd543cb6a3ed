"""ergometer show, list, export, sensors and doctor: looking at runs and at the machine."""

import hashlib

from harness import *

COLUMNS = ("level,node,path,name,index,count,t_begin_s,duration_s,cut,domain,device,scope,method,measured,in_total,"
           "energy_j,uncertainty_j,mean_power_w,max_power_w,coverage,filled_j,gap_j,note,rank")


def strict_json(text):
    """Parses JSON as the standard has it: no NaN, no Infinity."""
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")
    return json.loads(text, parse_constant=refuse)


class RunsTest(CliTest):
    def by_hand(self, run, energy_w=50, gpu_w=200, **manifest):
        """A run of 10 s in two epochs of two phases: 50 W of a package, 200 W of a GPU; 2500 J."""
        manifest = {"schema": "ergometer.run/1", "name": run, "nodes": ["n"], "begin_ns": 10**9, "end_ns": 11 * 10**9,
                    "exit_code": 0, **manifest}
        self.write(f"{run}/run.json", json.dumps(manifest))
        times = range(0, 13 * 10**9, 5 * 10**8)
        counter = "".join(f"{t},{energy_w * t / 1e9}\n" for t in times)
        power = "".join(f"{t},{gpu_w}\n" for t in times)
        self.write(f"{run}/nodes/n/samples/package0.csv", "t_ns,energy_j\n" + counter)
        self.write(f"{run}/nodes/n/samples/gpu0.csv", "t_ns,power_w\n" + power)
        rows = ["t_begin_ns,t_end_ns,path,attributes", "1000000000,11000000000,train,"]
        for epoch, begin in enumerate((1, 6)):
            rows.append(f"{begin}000000000,{begin + 5}000000000,train/epoch[{epoch}],samples=100")
            rows.append(f"{begin}000000000,{begin + 2}000000000,train/epoch[{epoch}]/forward,")
            rows.append(f"{begin + 2}000000000,{begin + 5}000000000,train/epoch[{epoch}]/backward,")
        self.write(f"{run}/nodes/n/regions.csv", "\n".join(rows) + "\n")

    def record(self, run, *command):
        """A run as the tool writes it."""
        self.write("fake.toml", SCENARIO)
        done = self.tool("run", "-o", run, "--sensors", "fake=fake.toml", "--", *(command or ["sleep", "0.3"]))
        self.assertEqual(done.returncode, 0, done.stderr)

    def good(self, *arguments, **options):
        done = self.tool(*arguments, text=True, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *arguments, says):
        done = self.tool(*arguments, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def checksums(self, folder):
        found = {}
        for parent, _, names in os.walk(self.path(folder)):
            for name in names:
                with open(os.path.join(parent, name), "rb") as file:
                    found[os.path.join(parent, name)] = hashlib.sha256(file.read()).hexdigest()
        return found


class Show(RunsTest):
    def row(self, text, label):
        rows = [line.split() for line in text.splitlines() if line.split()[:1] == [label]]
        self.assertEqual(len(rows), 1, text)
        return rows[0]

    def test_by_epoch(self):
        self.by_hand("r")
        text = self.good("show", "r", "--by", "epoch")
        self.assertEqual(text, self.good("show", "r"), "epoch is the default")
        self.assertIn("2.500 kJ", text)
        self.assertIn("1.250 kJ", " ".join(self.row(text, "train/epoch[0]")))
        self.assertIn("1.250 kJ", " ".join(self.row(text, "train/epoch[1]")))
        self.assertIn("12.5", self.row(text, "train/epoch[0]"), "1250 J for 100 samples")

    def test_by_phase(self):
        self.by_hand("r")
        with open(self.path("r/nodes/n/regions.csv"), "a") as regions:
            regions.write("11000000000,12000000000,infer,\n")
        text = self.good("show", "r", "--by", "phase")
        self.assertEqual(self.row(text, "train")[1:4], ["10.00", "2.500", "kJ"])
        self.row(text, "infer")
        self.assertNotIn("epoch", text)

    def test_by_domain(self):
        self.by_hand("r")
        text = self.good("show", "r", "--by", "domain")
        self.assertEqual(self.row(text, "train/epoch[1]"),
                         ["train/epoch[1]", "1.250", "kJ", "250.0", "J", "1.000", "kJ", "+0.0", "%"],
                         "the last: how far its time times the run's mean power is off")

    def test_unknown_grouping(self):
        self.by_hand("r")
        self.refused("show", "r", "--by", "phasse", says=['"phasse"', 'did you mean "phase"?'])

    def test_json(self):
        self.by_hand("r")
        summary = strict_json(self.good("show", "r", "--json"))
        self.assertEqual(summary["schema"], "ergometer.summary/1")
        self.assertEqual(set(summary), {"schema", "run", "nodes", "regions", "pooled", "overhead", "warnings"})
        run = summary["run"]
        self.assertAlmostEqual(run.pop("uncertainty_j"), 0, delta=250)
        self.assertEqual(run, {"duration_s": 10, "exit_code": 0, "energy_j": 2500, "valid": True, "net_energy_j": None,
                               "net_uncertainty_j": None,
                               "modelled_j": None, "mean_power_w": 250, "partial": False, "missing_nodes": [],
                               "shortcuts": {"tdp_j": None, "tdp_error": None, "mean_power_j": 2500,
                                             "mean_power_error": 0}})
        domains = {d["domain"]: d for d in summary["nodes"][0]["domains"]}
        self.assertEqual({name: d["energy_j"] for name, d in domains.items()}, {"package/0": 500, "gpu/0": 2000})
        self.assertEqual(domains["package/0"]["method"], "counter")
        self.assertEqual(domains["gpu/0"]["method"], "integral")
        epoch = next(r for r in summary["regions"] if r["path"] == "train/epoch[1]")
        self.assertEqual((epoch["index"], epoch["t_begin_s"], epoch["duration_s"], epoch["energy_j"]), (1, 5, 5, 1250))
        self.assertEqual(epoch["metrics"]["energy_per_sample_j"], 12.5)

    def test_nothing_measured_is_null(self):
        self.write("r/run.json", '{"schema": "ergometer.run/1", "nodes": []}')
        summary = strict_json(self.good("show", "r", "--json"))
        self.assertIsNone(summary["run"]["energy_j"])
        self.assertIs(summary["run"]["valid"], False)
        self.assertIn("not measured", self.good("show", "r"))

    def test_is_what_the_run_printed(self):
        self.record("r")
        before = self.checksums("r")
        self.assertEqual(self.good("show", "r", "--json"), self.read("r/summary.json"))
        self.good("show", "r")
        self.assertEqual(self.checksums("r"), before, "show writes nothing")

    def test_no_run(self):
        self.write("folder/notes.txt", "mine")
        self.refused("show", "folder", says=["folder", "run.json is missing"])
        self.refused("show", "absent", says=["no run directory absent"])
        self.refused("show", "folder/notes.txt", says=["folder/notes.txt", "a file"])

    def test_damaged_manifest(self):
        self.write("r/run.json", "")
        self.refused("show", "r", says=["r is no run directory", "run.json is empty"])
        for text in "{", "[]", '{"schema": "other/1"}', '{"schema": "ergometer.run/2"}':
            self.write("r/run.json", text)
            self.refused("show", "r", says=["r/run.json"])

    def test_truncated_samples(self):
        self.record("r", "sleep", "1")
        [samples] = self.node_files("r", "samples/package.csv.zst")
        os.truncate(samples, os.path.getsize(samples) - 5)
        done = self.tool("show", "r", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("package/0", done.stdout)
        self.assertIn("samples/package.csv.zst: the last frame is cut off", done.stdout)
        summary = strict_json(self.good("show", "r", "--json"))
        self.assertIs(summary["run"]["partial"], True)
        self.assertGreater(summary["run"]["energy_j"], 10)

    def test_cut_row(self):
        self.by_hand("r")
        samples = self.path("r/nodes/n/samples/package0.csv")
        os.truncate(samples, os.path.getsize(samples) - 8)
        warnings = strict_json(self.good("show", "r", "--json"))["warnings"]
        about = [w["message"] for w in warnings if "package0.csv" in w["message"]]
        self.assertEqual(len(about), 1, warnings)

    def test_cut_run(self):
        self.by_hand("r", state="running", end_ns=None, exit_code=None)
        self.assertIn("not complete", self.good("show", "r"))
        self.assertIs(strict_json(self.good("show", "r", "--json"))["run"]["valid"], False)


class List(RunsTest):
    def rows(self, *arguments):
        return {line.split()[0]: line for line in self.good("list", *arguments).splitlines()[1:]}

    def test_runs(self):
        late, early = ([{"mono_ns": 0, "wall_ns": s * 10**9}] for s in (1700000000, 1600000000))
        self.by_hand("store/a", clocks=late)
        self.by_hand("store/deep/b", energy_w=25, clocks=early, exit_code=7)
        self.write("store/damaged/run.json", "{")
        self.write("store/empty/run.json", "")
        self.write("store/notes/readme.txt", "no run")
        rows = self.rows("store")
        self.assertEqual(set(rows), {"a", "deep/b", "damaged", "empty"})
        self.assertLess(list(rows).index("deep/b"), list(rows).index("a"), "in the order of their start")
        for text in "10.00 s", "2.500 kJ", "complete", "2023-11-1":
            self.assertIn(text, rows["a"])
        self.assertIn("2.250 kJ", rows["deep/b"])
        self.assertEqual(rows["deep/b"].split()[-2:], ["7", "complete"])
        self.assertIn("damaged: store/damaged/run.json", rows["damaged"])
        self.assertIn("run.json is empty", rows["empty"])

    def test_energy_without_summary(self):
        self.record("r")
        with_summary = self.rows()["r"]
        os.remove(self.path("r/summary.json"))
        self.assertRegex(with_summary, r"\d J")
        self.assertEqual(self.rows()["r"], with_summary)
        self.write("r/summary.json", "{")
        self.assertEqual(self.rows()["r"], with_summary, "a damaged summary counts as none")

    def test_no_runs(self):
        os.mkdir(self.path("store"))
        self.assertEqual(self.good("list", "store"), "no runs in store\n")

    def test_no_folder(self):
        self.refused("list", "absent", says=["no folder absent"])


class Export(RunsTest):
    def test_csv(self):
        self.by_hand("r")
        text = self.good("export", "r", "--format", "csv")
        self.assertEqual(text.splitlines()[0], COLUMNS)
        rows = list(csv.reader(io.StringIO(text)))
        self.assertEqual({len(row) for row in rows}, {len(COLUMNS.split(","))})
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 16, "the run and seven regions, two domains each")
        self.assertEqual(sum(float(r["energy_j"]) for r in rows if r["level"] == "run"), 2500)
        epochs = [r for r in rows if r["name"] == "epoch"]
        self.assertEqual([(r["path"], r["index"], r["domain"], r["energy_j"]) for r in epochs],
                         [("train/epoch[0]", "0", "package/0", "250"), ("train/epoch[0]", "0", "gpu/0", "1000"),
                          ("train/epoch[1]", "1", "package/0", "250"), ("train/epoch[1]", "1", "gpu/0", "1000")])

    def test_csv_of_awkward_names(self):
        self.by_hand("r")
        regions = self.path("r/nodes/n/regions.csv")
        with open(regions, "a") as file:
            file.write('2000000000,3000000000,"a, ""b""",\n')
        rows = list(csv.reader(io.StringIO(self.good("export", "r", "--format", "csv"))))
        self.assertEqual({len(row) for row in rows}, {len(COLUMNS.split(","))})
        self.assertIn('a, "b"', [row[2] for row in rows])

    def test_json(self):
        self.by_hand("r", command=["python3", "train.py"])
        exported = strict_json(self.good("export", "r", "--format", "json"))
        manifest = exported.pop("manifest")
        self.assertEqual(exported, strict_json(self.good("show", "r", "--json")))
        self.assertEqual((manifest["name"], manifest["command"], manifest["state"], manifest["nodes"]),
                         ("r", ["python3", "train.py"], "complete", ["n"]))
        self.assertIsNone(manifest["started_unix_ns"])

    def test_samples(self):
        self.by_hand("r")
        text = self.good("export", "r", "--format", "csv", "--samples")
        self.assertEqual(text.splitlines()[0], "t_ns,node,sensor,domain,column,value")
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 2 * 26)
        package = [(int(r["t_ns"]), float(r["value"])) for r in rows if r["sensor"] == "package0"]
        self.assertEqual(package, [(i * 5 * 10**8, 25.0 * i) for i in range(26)])
        self.assertEqual({(r["node"], r["domain"], r["column"]) for r in rows},
                         {("n", "package/0", "energy_j"), ("n", "gpu/0", "power_w")})
        self.refused("export", "r", "--format", "json", "--samples", says=["--samples", "--format csv"])

    def test_missing_samples_are_no_rows(self):
        self.by_hand("r")
        self.write("r/nodes/n/samples/gpu0.csv", "t_ns,power_w\n0,\n1000000000,5\n")
        rows = self.good("export", "r", "--format", "csv", "--samples").splitlines()
        self.assertEqual([row for row in rows if ",gpu0," in row], ["1000000000,n,gpu0,gpu/0,power_w,5"])

    def test_output_file(self):
        self.by_hand("r")
        self.write("out.csv", "older")
        self.assertEqual(self.good("export", "r", "--format", "csv", "-o", "out.csv"), "")
        self.assertEqual(self.read("out.csv"), self.good("export", "r", "--format", "csv"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["out.csv", "r"], "no temporary file is left")

    def test_F102_input_is_never_overwritten(self):
        self.by_hand("r")
        os.symlink("r/run.json", self.path("link.json"))
        os.symlink("r", self.path("folder-link"))
        os.link(self.path("r/nodes/n/samples/gpu0.csv"), self.path("second-name.csv"))
        before = self.checksums("r")
        for output in ("r/run.json", "r/nodes/n/samples/gpu0.csv", "link.json", "second-name.csv", "./r/../r/run.json",
                       "folder-link/nodes/n/regions.csv", self.path("r/run.json")):
            for options in ["--format", "json"], ["--format", "csv"], ["--format", "csv", "--samples"]:
                with self.subTest(output=output, options=options):
                    self.refused("export", "r", *options, "-o", output, says=[output, "is the input itself"])
                    self.refused("export", "folder-link", *options, "-o", output, says=["is the input itself"])
        self.assertEqual(self.checksums("r"), before)
        self.assertTrue(os.path.islink(self.path("link.json")))

    def test_failed_export_leaves_the_output_alone(self):
        self.write("r/run.json", "{")
        self.write("out.csv", "older")
        self.refused("export", "r", "--format", "csv", "-o", "out.csv", says=["r/run.json"])
        self.refused("export", "r", "--format", "csv", "--samples", "-o", "out.csv", says=["r/run.json"])
        self.assertEqual(self.read("out.csv"), "older")
        self.by_hand("r")
        self.refused("export", "r", "--format", "csv", "-o", "absent/out.csv", says=["absent/out.csv"])
        self.assertEqual(sorted(os.listdir(self.dir)), ["out.csv", "r"])

    def test_unknown_format(self):
        self.by_hand("r")
        self.refused("export", "r", "--format", "jsn", says=['"jsn"', 'did you mean "json"?'])
        self.refused("export", "r", says=["--format"])


class Locale(RunsTest):
    # No helper program's text is parsed; what is left of F109 is that the host's comma reaches no number of ours.
    def test_F109_F111_decimal_comma(self):
        name = "de_DE.UTF-8"
        # Where the system has its sources, the locale is built, so that setting it has an effect.
        if shutil.which("localedef"):
            subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.path(name)], capture_output=True)
        self.by_hand("r")
        commands = [("show", "r"), ("show", "r", "--json"), ("list",), ("export", "r", "--format", "csv"),
                    ("export", "r", "--format", "csv", "--samples"), ("export", "r", "--format", "json")]
        plain = [self.good(*command) for command in commands]
        self.env.update(LC_ALL=name, LANG=name, LOCPATH=self.dir)
        self.assertEqual([self.good(*command) for command in commands], plain)
        self.record("recorded")
        self.assertAlmostEqual(strict_json(self.read("recorded/summary.json"))["run"]["mean_power_w"], 100, delta=2)


class Machine(CliTest):
    """sensors and doctor, on a host root with or without a RAPL package."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("root"))
        os.symlink("/proc", self.path("root/proc"))

    def rapl(self):
        zone = "root/sys/class/powercap/intel-rapl:0"
        self.write(f"{zone}/name", "package-0\n")
        self.write(f"{zone}/energy_uj", "1000000\n")
        self.write(f"{zone}/max_energy_range_uj", "262143328850\n")
        self.write(f"{zone}/constraint_0_max_power_uw", "205000000\n")

    def on_root(self, *arguments):
        done = self.tool("--host-root", "root", "--nvml", "/nonexistent", *arguments, text=True)
        self.assertEqual(done.stderr, "")
        return done

    def test_doctor_without_energy_sensor(self):
        done = self.on_root("doctor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no energy sensor can be read", done.stdout)
        self.assertIn("remedy:", done.stdout)
        self.assertIn("/nonexistent", done.stdout)

    def test_doctor_with_energy_sensor(self):
        self.rapl()
        done = self.on_root("doctor")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("package/0 measured through rapl-powercap", done.stdout)
        self.assertNotIn("no energy sensor can be read", done.stdout)

    def test_sensors_json(self):
        self.rapl()
        done = self.on_root("sensors", "--json")
        self.assertEqual(done.returncode, 0)
        machine = strict_json(done.stdout)
        self.assertEqual(machine["schema"], "ergometer.sensors/1")
        self.assertEqual(machine["gpus"], [])
        [(interface, channel)] = [(s["interface"], c) for s in machine["sensors"] for c in s["channels"]
                                  if c["domain"] == "package/0"]
        self.assertEqual((interface, channel["unit"], channel["method"], channel["value"]),
                         ("rapl-powercap", "J", "counter", 1.0))
        absent = {a["interface"]: a for a in machine["absences"]}
        self.assertIn("/nonexistent", absent["nvml"]["reason"])
        self.assertTrue(absent["nvml"]["remedy"])

    def test_sensors_json_of_this_machine(self):
        machine = strict_json(self.tool("sensors", "--json", text=True).stdout)
        self.assertEqual(set(machine), {"schema", "sensors", "absences", "gpus"})

    def test_sensors_of_one_interface(self):
        self.rapl()
        done = self.on_root("sensors", "--json", "--sensors", "rapl")
        self.assertEqual({s["interface"] for s in strict_json(done.stdout)["sensors"]}, {"rapl-powercap"})

    def test_unknown_interface(self):
        done = self.tool("sensors", "--sensors", "nvlm", text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn('did you mean "nvml"?', done.stderr)


if __name__ == "__main__":
    unittest.main()
