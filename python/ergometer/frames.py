"""A run or a study as pandas frames, ready for plots and statistics."""

import json
import os

from .reader import RunError, read_run


class LoadedRun:
    """What load() gives for a run. All times `t_s` are seconds since the command's start.

    run        run.json, a dict
    summary    one row a region and domain (region "" is the whole run): node, domain, energy_j, uncertainty_j, ...
    regions    one row a region: path, name, index, rank, t_begin_s, duration_s, and a column an attribute
    samples    sensor -> one row a reading: t_s, node and the sensor's columns; of several nodes together
    """

    def __init__(self, run, summary, regions, samples):
        self.run, self.summary, self.regions, self.samples = run, summary, regions, samples

    def __repr__(self):
        return "<ergometer run %r: %d sensors, %d regions>" % (
            self.run.get("name") or "", len(self.samples), len(self.regions))


class LoadedStudy:
    """What load() gives for a study: name, and `runs`, one row a run: its factors, verdict and metrics."""

    def __init__(self, table, runs):
        self.name, self.table, self.runs = table.get("name") or "", table, runs

    def __repr__(self):
        return "<ergometer study %r: %d runs>" % (self.name, len(self.runs))


def load(path):
    """Reads a run directory, or a study's folder or table.json. Needs pandas.

    The summary is that of RUN/summary.json; without that file (`ergometer show RUN --json > RUN/summary.json` writes it)
    it is None.
    """
    pandas = _pandas()
    table = path if os.path.basename(path) == "table.json" else os.path.join(path, "table.json")
    if os.path.isfile(table):
        return _load_study(pandas, table)
    content = read_run(path)
    begin = content["run"].get("begin_ns")
    if begin is None:
        begin = _first_time(content)
    return LoadedRun(content["run"], _summary(pandas, path), _regions(pandas, content, begin),
                     _samples(pandas, content, begin))


def _pandas():
    try:
        import pandas
    except ImportError:
        raise RunError("ergometer.load needs pandas: install it (pip install pandas, or Debian's python3-pandas), "
                       "or use ergometer.read_run, which does without") from None
    return pandas


def _first_time(content):
    times = [int(table["t_ns"].iloc[0]) for node in content["nodes"].values() for table in node["samples"].values()
             if len(table) and "t_ns" in table]
    return min(times) if times else 0


def _begin_of(node, begin):
    """Each of several machines has a clock and a begin of its own: times are since the begin of its own command."""
    own = (node["part"] or {}).get("begin_ns")
    return begin if own is None else own


def _samples(pandas, content, begin):
    parts = {}
    for name, node in content["nodes"].items():
        start = _begin_of(node, begin)
        for sensor, table in node["samples"].items():
            if "t_ns" not in table:
                continue
            frame = table.drop(columns=["t_ns"])
            frame.insert(0, "t_s", (table["t_ns"] - start) / 1e9)
            frame.insert(1, "node", name)
            parts.setdefault(sensor, []).append(frame)
    return {sensor: pandas.concat(frames, ignore_index=True) for sensor, frames in parts.items()}


def _regions(pandas, content, begin):
    rows = []
    for name, node in content["nodes"].items():
        start = _begin_of(node, begin)
        for region in node["regions"].to_dict("records"):
            last = region["path"].rsplit("/", 1)[-1]
            word, _, index = last.partition("[")
            row = {"node": name, "path": region["path"], "name": word,
                   "index": int(index[:-1]) if index.endswith("]") and index[:-1].isdigit() else None,
                   "rank": region.get("rank"), "t_begin_s": (region["t_begin_ns"] - start) / 1e9,
                   "duration_s": (region["t_end_ns"] - region["t_begin_ns"]) / 1e9}
            for key, value in (region.get("attributes") or {}).items():
                row.setdefault(key, _number(value))
            rows.append(row)
    columns = ["node", "path", "name", "index", "rank", "t_begin_s", "duration_s"]
    return pandas.DataFrame(rows) if rows else pandas.DataFrame(columns=columns)


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def _summary(pandas, path):
    try:
        with open(os.path.join(path, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RunError("%s/summary.json cannot be read: %s; remove it, it can be made anew" % (path, error)) from None
    rows = []
    for node in summary.get("nodes", []):
        for domain in node.get("domains", []):
            rows.append({"region": "", "node": node.get("name"), "duration_s": summary["run"].get("duration_s"),
                         **_plain(domain)})
    for region in summary.get("regions", []):
        for domain in region.get("domains", []):
            rows.append({"region": region.get("path"), "node": region.get("node"), "rank": region.get("rank"),
                         "duration_s": region.get("duration_s"), **_plain(domain)})
    return pandas.DataFrame(rows)


def _plain(values):
    return {key: value for key, value in values.items() if not isinstance(value, (dict, list))}


def _load_study(pandas, path):
    try:
        with open(path, encoding="utf-8") as file:
            table = json.load(file)
    except (OSError, ValueError) as error:
        raise RunError("%s cannot be read: %s" % (path, error)) from None
    if not isinstance(table, dict) or table.get("schema") != "ergometer.study-table/1":
        raise RunError('%s is something else: expected is an object with "schema": "ergometer.study-table/1"' % path)
    rows = []
    for run in table["runs"]:
        row = {}
        for factor, level in zip(table["factors"], table["cells"][run["cell"]]["levels"]):
            value = factor["values"][level]
            row[factor["name"]] = factor["levels"][level] if value is None else value
        row.update({key: run.get(key) for key in ("repetition", "block", "order", "folder", "verdict")})
        for metric in table["metrics"]:
            value = run["metrics"].get(metric["name"], {})
            row[metric["name"]] = value.get("value")
            row[metric["name"] + "_uncertainty"] = value.get("uncertainty")
        rows.append(row)
    return LoadedStudy(table, pandas.DataFrame(rows))
