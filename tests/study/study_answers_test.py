"""What `study show` answers of tables whose answers are known: settings by sample where epochs differ, scaling, classes of nodes."""

from study_world import *


def factor(name, levels, unit=""):
    return {"name": name, "unit": unit, "levels": [str(level) for level in levels],
            "values": [level if isinstance(level, (int, float)) else None for level in levels]}


class Answers(CliTest):
    def show(self, factors, runs, metrics, *options, code=0):
        """`runs`: (levels, repetition, values by metric)."""
        cells = []
        for levels, _, _ in runs:
            if levels not in cells:
                cells.append(levels)
        rows = [{"cell": cells.index(levels), "repetition": repetition, "block": repetition, "order": i, "folder": "",
                 "verdict": "valid", "reasons": [], "metrics": {name: {"value": value} for name, value in values.items()}}
                for i, (levels, repetition, values) in enumerate(runs)]
        table = {"schema": "ergometer.study-table/1", "name": "t", "description": "", "factors": factors,
                 "metrics": [{"name": name, "title": title, "unit": unit, "lower_is_better": True}
                             for name, title, unit in metrics],
                 "cells": [{"levels": levels} for levels in cells], "runs": rows, "warnings": []}
        self.write("t/table.json", json.dumps(table))
        done = self.tool("study", "show", "t", *options, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    EPOCH = [("seconds_per_epoch", "time per epoch", "s"), ("energy_per_epoch_j", "energy per epoch", "J"),
             ("samples_per_s", "samples per second", "1/s"), ("seconds_per_sample", "time per sample", "s"),
             ("energy_per_sample_j", "energy per sample", "J")]

    @staticmethod
    def epoch(samples, seconds, joules):
        return {"seconds_per_epoch": seconds, "energy_per_epoch_j": joules, "samples_per_s": samples / seconds,
                "seconds_per_sample": seconds / samples, "energy_per_sample_j": joules / samples}

    def test_settings_of_unequal_epochs_are_compared_by_sample(self):
        # Batch 64 does twice the samples in its epoch: more joules an epoch, fewer a sample.
        runs = [([batch], r, self.epoch(samples, seconds, joules)) for r in range(2)
                for batch, samples, seconds, joules in ((0, 1000, 10 + r / 10, 1000 + r), (1, 2000, 15 + r / 10, 1500 + r))]
        shown = self.show([factor("batch", [32, 64])], runs, self.EPOCH)
        self.assertIn("Best settings, by energy per sample and time per sample", shown)
        self.assertIn("least energy: batch 64 (no other setting is better)", shown)
        self.assertIn("Effects on energy per sample", shown)

    def test_settings_of_equal_epochs_are_compared_by_epoch(self):
        runs = [([cap], r, self.epoch(1000, seconds + r / 10, joules + r)) for r in range(2)
                for cap, seconds, joules in ((0, 12, 900), (1, 10, 1000))]
        shown = self.show([factor("power_limit", [200, 300], "W")], runs, self.EPOCH)
        self.assertIn("Best settings, by energy per epoch and time per epoch", shown)
        self.assertRegex(shown, r"least energy: (power_limit )?200.*\(time \+19\.9 % \[.*\], energy -10\.0 % \[.*\]\)")
        self.assertIn("Zeus", shown)

    def test_scaling_with_gpus(self):
        # T = 80 / n: efficiency 1; energy twice as large on 8 GPUs as on 1 by n^(1/3).
        runs = [([i], r, {"seconds_per_epoch": 80 / n * (1 + r / 1000), "energy_per_epoch_j": 4000 * n ** (1 / 3) * (1 + r / 1000),
                          "duration_s": 3600 / n, "gpu_energy_j": 300 * 3600})
                for r in range(2) for i, n in enumerate((1, 2, 4, 8))]
        shown = self.show([factor("gpus", [1, 2, 4, 8])], runs,
                          self.EPOCH[:2] + [("duration_s", "time", "s"), ("gpu_energy_j", "energy of the GPUs", "J")])
        self.assertIn("Scaling with gpus", shown)
        last = [line for line in shown.splitlines() if line.startswith("     8 ") or line.strip().startswith("8  ")][-1]
        self.assertIn("8 (7.9", last)
        self.assertIn("100 %", last)
        self.assertIn("200 %", last)
        self.assertRegex(shown, r"time per epoch +gpus +all +-1 \(")
        self.assertRegex(shown, r"energy per epoch +gpus +all +0\.333 \(")
        # 1 GPU-hour each, 300 W x 1 h.
        self.assertRegex(shown, r"all +1\.080 MJ .*300\.0 W")

    def test_classes_of_nodes(self):
        metrics = [("duration_s", "time", "s"), ("energy_j", "energy", "J"), ("gpu_energy_j", "energy of the GPUs", "J"),
                   ("energy_per_sample_j", "energy per sample", "J"), ("gpu_active_ratio", "GPU active", "")]
        runs = []
        for r in range(3):
            off = 1 + r / 1000
            for batch, cpu, gpu in ((0, 2.0, 8.0), (1, 2.0, 0.5)):
                runs.append(([0, 0, batch], r, {"duration_s": 100 * off, "energy_j": 20000 * off, "energy_per_sample_j": cpu}))
                runs.append(([0, 1, batch], r, {"duration_s": 20 * off, "energy_j": 10000 * off, "gpu_energy_j": 6000 * off,
                                                "energy_per_sample_j": gpu, "gpu_active_ratio": 0.9}))
                runs.append(([0, 2, batch], r, {"duration_s": 100 * off, "energy_j": 50000 * off, "gpu_energy_j": 30000 * off,
                                                "energy_per_sample_j": 5.0, "gpu_active_ratio": 0.0}))
        shown = self.show([factor("mode", ["infer"]), factor("node_class", ["cpu", "gpu", "gpu-idle"]), factor("batch", [1, 16])],
                          runs, metrics)
        self.assertRegex(shown, r"infer +batch 1 +cpu : gpu +5 \(.*\) +2 \(.*\) +-60\.0 % +no")
        self.assertRegex(shown, r"infer +batch 1 +gpu +20\.0\d.*10\.0\d kJ.*500\.0 W +60 %")
        self.assertIn("gpu-idle, infer, batch 1: 30.03 kJ", shown)
        self.assertIn("60 % of the energy; 150 % on top of the rest", shown)
        # ln(8/2) and ln(0.5/2) are of one size: half way between batch 1 and 16 on the log axis.
        self.assertIn("cpu against gpu: even at a batch of about 4 (between 1 and 16)", shown)

    GPUS = [1, 2, 4, 8]

    def scaling_runs(self):
        return [([i], r, {"seconds_per_epoch": 80 / n * (1 + r / 1000), "energy_per_epoch_j": 4000 * (1 + r / 1000)})
                for r in range(2) for i, n in enumerate(self.GPUS)]

    def test_a_prediction_outside_the_range_is_warned_of(self):
        shown = self.show([factor("gpus", self.GPUS)], self.scaling_runs(), self.EPOCH[:2], "--predict", "gpus=16", "--predict", "gpus=3")
        outside, inside = shown.split("By the power laws, gpus=16")[1].split("By the power laws, gpus=3")
        self.assertRegex(outside, r"time per epoch +all +5\.00\d s")
        self.assertIn("16 is outside the fitted range 1 to 8 (2 times its upper end)", outside)
        self.assertRegex(inside, r"time per epoch +all +26\.6[678] s")
        self.assertNotIn("outside", inside)

    def test_predictions_that_cannot_be_made(self):
        for wanted, says in (("gpus", "--predict gpus=16"), ("gpus=0", "above 0"), ("gpu=4", 'did you mean "gpus"'),
                             ("a=4", "three levels")):
            message = self.show([factor("gpus", self.GPUS), factor("a", ["x"])],
                                [(levels + [0], r, values) for levels, r, values in self.scaling_runs()], self.EPOCH[:2], "--predict", wanted, code=2)
            self.assertIn(says, message)

    def test_only_the_cells_that_are_asked_for(self):
        factors = [factor("network", ["a", "b"]), factor("batch", [32, 64])]
        runs = [([n, b], 0, self.epoch(1000, 10 + 5 * n + b, 100 + 50 * n + b)) for n in (0, 1) for b in (0, 1)]
        shown = self.show(factors, runs, self.EPOCH, "--where", "network=b")
        self.assertNotRegex(shown, r"(?m)^  a ")
        self.assertEqual(len([line for line in shown.splitlines() if line.startswith("  b ")]), 2)
        self.assertIn('did you mean "network"', self.show(factors, runs, self.EPOCH, "--where", "networks=b", code=2))
        self.assertIn("it has a, b", self.show(factors, runs, self.EPOCH, "--where", "network=zzz", code=2))
        self.assertIn("FACTOR=LEVEL", self.show(factors, runs, self.EPOCH, "--where", "network", code=2))

    def test_the_published_numbers_of_zeus(self):
        traces = os.path.join(os.environ.get("ERGOMETER_SHARED") or os.path.join(os.path.dirname(__file__), "../../../shared"), "traces/zeus")
        if not os.path.isdir(traces):
            self.skipTest("no recorded traces beside the checkout (set ERGOMETER_SHARED)")
        done = self.tool("import", f"{traces}/power_v100.csv", f"{traces}/power_a40.csv", "-o", "zeus", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

        def shown(*where):
            words = [word for pair in where for word in ("--where", pair)]
            done = self.tool("study", "show", "zeus", *words, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        resnet = shown("file=power_v100", "dataset=imagenet", "network=resnet50", "batch_size=256")
        self.assertRegex(resnet, r"250W +1 +3515\.0 s +774\.2 kJ")
        self.assertIn("least energy: 150W (time +18.0 %, energy -22.5 %; measured once)", resnet)
        self.assertIn("least energy, at most 10 % slower: 175W (time +9.6 %, energy -17.2 %; measured once)", resnet)
        bert = shown("file=power_v100", "dataset=squad", "network=bert_base_uncased", "batch_size=32")
        self.assertRegex(bert, r"250W +1 +[\d.]+ s +395\.6 kJ")
        self.assertIn("least energy: 150W (time +28.1 %, energy -17.8 %; measured once)", bert)
        self.assertIn("least energy, at most 10 % slower: 200W (time +6.3 %, energy -10.9 %; measured once)", bert)
        a40 = shown("file=power_a40", "dataset=imagenet", "network=resnet50", "batch_size=256")
        self.assertIn("least energy: 200W (time +7.2 %, energy -19.1 %; measured once)", a40)
        self.assertIn("least energy, at most 10 % slower: 200W (time +7.2 %, energy -19.1 %; measured once)", a40)

    def test_a_study_without_these_questions_is_not_asked(self):
        shown = self.show([factor("a", ["x", "y"])], [([i], 0, {"duration_s": 1.0 + i}) for i in (0, 1)], [("duration_s", "time", "s")])
        for word in ("Scaling", "Power laws", "GPU-hours", "class of node", "Best settings"):
            self.assertNotIn(word, shown)


if __name__ == "__main__":
    unittest.main()
