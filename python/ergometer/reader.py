"""Reads a run directory (docs/run-format.md) into plain lists, or into pandas where pandas is installed."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import warnings


class RunError(Exception):
    """A run directory that cannot be read; the message names the file and the remedy."""


def read_run(path):
    """Reads a whole run. Returns a dict:

    run      run.json
    nodes    node name -> {"node": node.json or None, "part": part.json or None, "samples": {sensor: table}, "regions": table, "events": table}

    A table is a pandas DataFrame, or without pandas a dict of one list a column. Missing values are None (pandas:
    NaN). Times are integers of nanoseconds; the column "attributes" of regions holds dicts of strings.
    """
    run = _read_json(os.path.join(path, "run.json"), "ergometer.run/1")
    nodes = {}
    root = os.path.join(path, "nodes")
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        folder = os.path.join(root, name)
        if name.startswith(".") or not os.path.isdir(folder):
            continue
        try:
            node = _read_json(os.path.join(folder, "node.json"), "ergometer.node/1")
        except RunError as error:
            warnings.warn(str(error), stacklevel=2)
            node = None
        nodes[name] = {
            "node": node,
            "part": _read_part(os.path.join(folder, "part.json")),
            "samples": _read_samples(os.path.join(folder, "samples")),
            "regions": _read_table(os.path.join(folder, "regions.csv"), _REGION_COLUMNS),
            "events": _read_table(os.path.join(folder, "events.csv"), _EVENT_COLUMNS),
        }
    return {"run": run, "nodes": nodes}


def _read_json(path, schema):
    try:
        with open(path, encoding="utf-8-sig") as file:
            value = json.load(file)
    except FileNotFoundError:
        raise RunError("%s is missing: name the folder that ergometer run wrote" % path) from None
    except (OSError, ValueError) as error:
        raise RunError("%s cannot be read: %s" % (path, error)) from None
    if not isinstance(value, dict) or value.get("schema") != schema:
        raise RunError('%s is something else: expected is an object with "schema": "%s"' % (path, schema))
    return value


def _read_part(path):
    """What one of several machines says of its part of the run; None for a run of one machine."""
    if not os.path.exists(path):
        return None
    try:
        return _read_json(path, "ergometer.part/1")
    except RunError as error:
        warnings.warn(str(error), stacklevel=3)
        return None


def _decompress(path):
    """The text of a .zst file up to the first damage."""
    with open(path, "rb") as file:
        data = file.read()
    for module in ("zstandard", "compression.zstd"):
        try:
            library = __import__(module, fromlist=["_"])
        except ImportError:
            continue
        return _decompress_frames(path, data, library)
    program = shutil.which("zstd")
    if not program:
        raise RunError("%s needs the zstandard module (pip install zstandard) or the program zstd" % path)
    done = subprocess.run([program, "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        warnings.warn("%s is damaged or cut; it is read up to there" % path, stacklevel=4)
    return done.stdout


def _decompress_frames(path, data, library):
    out = []
    while data:
        try:
            if hasattr(library, "ZstdDecompressor") and hasattr(library.ZstdDecompressor(), "decompressobj"):
                frame = library.ZstdDecompressor().decompressobj()
            else:
                frame = library.ZstdDecompressor()
            part = frame.decompress(data)
            if not frame.eof:
                raise ValueError("cut")
            rest = frame.unused_data
        except Exception:  # each library has an error of its own
            warnings.warn("%s is damaged or cut; it is read up to there" % path, stacklevel=5)
            break
        out.append(part)
        data = rest
    return b"".join(out)


def _number(text):
    if text == "":
        return None
    value = float(text)
    return value if value - value == 0 else None  # nan and inf are missing


def _integer(text):
    return int(text) if text != "" else None


def _rows(text, path):
    lines = csv.reader(io.StringIO(text.decode("utf-8-sig", "replace"), newline=""))
    header = next(lines, None)
    if not header:
        return [], []
    rows, skipped = [], 0
    for row in lines:
        if len(row) == len(header):
            rows.append(row)
        elif row:
            skipped += 1
    if skipped:
        warnings.warn("%s: %d rows left out" % (path, skipped), stacklevel=4)
    return header, rows


def _read_samples(folder):
    tables = {}
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, file)
        if os.path.getsize(path) == 0:
            continue
        if file.endswith(".csv.zst"):
            name, text = file[:-8], _decompress(path)
        elif file.endswith(".csv"):
            name = file[:-4]
            with open(path, "rb") as plain:
                text = plain.read()
        else:
            continue
        header, rows = _rows(text, path)
        readers = [_integer if column in ("t_ns", "read_ns") else _number for column in header]
        values, skipped = [], 0
        for row in rows:
            try:
                values.append([read(field.strip()) for read, field in zip(readers, row)])
            except ValueError:
                skipped += 1
        if skipped:
            warnings.warn("%s: %d rows are not numbers and are left out" % (path, skipped), stacklevel=3)
        tables[name] = _table(header, values)
    return tables


def _attributes(text):
    out = {}
    for part in re.findall(r"(?:\\.|[^;\\])+", text):
        key, _, value = (list(_split_once(part)) + [""])[:3]
        if key:
            out[key] = value
    return out


def _split_once(part):
    """Key, "=" and value of an attribute, with the backslashes resolved."""
    match = re.match(r"((?:\\.|[^=\\])*)(=?)(.*)", part, re.S)
    resolve = lambda text: re.sub(r"\\(.)", r"\1", text, flags=re.S)
    return resolve(match.group(1)), match.group(2), resolve(match.group(3))


_REGION_COLUMNS = {
    "t_begin_ns": _integer,
    "t_end_ns": _integer,
    "pid": _integer,
    "tid": _integer,
    "rank": _integer,
    "path": str,
    "attributes": _attributes,
}
_EVENT_COLUMNS = {"t_ns": _integer, "source": str, "kind": str, "detail": str}


def _read_table(path, columns):
    text = b""
    if os.path.exists(path):
        with open(path, "rb") as file:
            text = file.read()
    header, rows = _rows(text, path)
    if not header:
        return _table(list(columns), [])
    readers = [columns.get(column, str) for column in header]
    return _table(header, [[read(field) for read, field in zip(readers, row)] for row in rows])


def _table(header, rows):
    table = {column: [row[i] for row in rows] for i, column in enumerate(header)}
    try:
        import pandas
    except ImportError:
        return table
    return pandas.DataFrame(table, columns=header)
