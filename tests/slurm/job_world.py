"""What the tests of `ergometer job` share: runs written by hand, with power that does not change."""

import json
import os


def write_run(folder, begin_s, end_s, nodes, state="complete", parts=False):
    """A run at `folder`, between two times of the calendar (Unix seconds). `nodes`: {name: {"package0": watts, "gpu0": watts}}.
    With `parts` each node has a part of its own, as a run that several machines wrote."""
    begin, end = 10 * 10**9, int((10 + end_s - begin_s) * 1e9)
    manifest = {"schema": "ergometer.run/1", "name": "x", "state": state, "tool_version": "0", "command": ["x"], "directory": "/", "environment": {},
                "begin_ns": begin, "end_ns": end if state == "complete" else None, "exit_code": 0 if state == "complete" else None, "signal": None,
                "clocks": [{"mono_ns": begin, "wall_ns": int(begin_s * 1e9)}], "nodes": list(nodes), "warnings": []}
    for node, sensors in nodes.items():
        samples = os.path.join(folder, "nodes", node, "samples")
        os.makedirs(samples)
        if parts:
            part = manifest | {"schema": "ergometer.part/1", "nodes": [node], "place": {"node": node, "hostname": node, "boot_id": node},
                               "clock": {"reference": next(iter(nodes)), "offsets": [], "method": "same"}}
            with open(os.path.join(folder, "nodes", node, "part.json"), "w") as file:
                json.dump(part, file)
        for sensor, watts in sensors.items():
            with open(os.path.join(samples, f"{sensor}.csv"), "w") as file:
                file.write("t_ns,energy_j\n")
                for i in range(101):
                    t = begin + (end - begin) * i // 100
                    file.write(f"{t},{watts * (t - begin) / 1e9!r}\n")
    with open(os.path.join(folder, "run.json"), "w") as file:
        json.dump(manifest, file)


def write_record(folder, job, node, begin_s, end_s, domains, state="complete", others=()):
    """What ergometerd writes of a job on a node. `domains`: {name: (scope, joules)}."""
    os.makedirs(os.path.join(folder, str(job)), exist_ok=True)
    record = {"schema": "ergometer.job-part/1", "job": str(job), "uid": os.geteuid(), "user": "ada", "node": node, "exclusive": False, "attempt": 0,
              "state": state, "begin_ns": 0, "end_ns": int((end_s - begin_s) * 1e9), "begin_unix_ns": int(begin_s * 1e9),
              "end_unix_ns": int(end_s * 1e9), "interval_ns": 10**10, "boot_id": "b", "version": "0.1.0",
              "domains": [{"domain": name, "device": "d", "scope": scope, "method": "counter", "measured": True, "energy_j": joules,
                           "uncertainty_j": 1, "coverage": 1, "mean_power_w": joules / (end_s - begin_s), "max_power_w": None, "in_total": True}
                          for name, (scope, joules) in domains.items()],
              "others": [{"job": other, "overlap_s": 1} for other in others]}
    path = os.path.join(folder, str(job), f"{node}.json")
    with open(path, "w") as file:
        json.dump(record, file)
    return path
