"""What `study show` answers of tables whose answers are known: settings by sample where epochs differ, scaling, classes of nodes."""

from study_world import *


def factor(name, levels, unit=""):
    return {"name": name, "unit": unit, "levels": [str(level) for level in levels],
            "values": [level if isinstance(level, (int, float)) else None for level in levels]}


class Answers(CliTest):
    def show(self, factors, runs, metrics):
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
        done = self.tool("study", "show", "t", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

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
        self.assertRegex(shown, r"least energy: (power_limit )?200.*\(time \+19\.9 %, energy -10\.0 %\)")
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

    def test_a_study_without_these_questions_is_not_asked(self):
        shown = self.show([factor("a", ["x", "y"])], [([i], 0, {"duration_s": 1.0 + i}) for i in (0, 1)], [("duration_s", "time", "s")])
        for word in ("Scaling", "Power laws", "GPU-hours", "class of node", "Best settings"):
            self.assertNotIn(word, shown)


if __name__ == "__main__":
    unittest.main()
