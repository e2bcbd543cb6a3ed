"""What the command line's tests share: a scratch folder, a fake sensor, and ways to run the built program."""

import csv
import fcntl
import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TOOL = os.environ["ERGOMETER_BIN"]

# One counter of 100 W as a package, so that every run has energy whatever the machine is.
SCENARIO = """
[[sensor]]
name = "package"
domain = "package/0"
scope = "package"
counter = true
interval = "50ms"
shape = { kind = "constant", value_w = 100 }
"""


def alive(pid):
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=10):
    """Waits for a condition; its last value."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return condition()
        time.sleep(0.01)
    return True


class CliTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="ergometer-cli-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("ERGOMETER_")}
        self.env["HOME"] = self.dir
        self.env.pop("XDG_CONFIG_HOME", None)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def tool(self, *arguments, **options):
        """Runs the tool to its end."""
        options.setdefault("cwd", self.dir)
        options.setdefault("env", self.env)
        options.setdefault("timeout", 60)
        options.setdefault("stdin", subprocess.DEVNULL)
        if "stdout" not in options and "stderr" not in options:
            options["capture_output"] = True
        return subprocess.run([TOOL, *arguments], **options)

    def start(self, *arguments, **options):
        """Starts the tool and leaves it running."""
        options.setdefault("cwd", self.dir)
        options.setdefault("env", self.env)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([TOOL, *arguments], **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def manifest(self, run):
        return json.loads(self.read(f"{run}/run.json"))

    def node_files(self, run, name):
        nodes = self.path(f"{run}/nodes")
        return [os.path.join(nodes, node, name) for node in os.listdir(nodes)]

    def table(self, run, name):
        rows = []
        for file in self.node_files(run, name):
            with open(file, newline="") as text:
                rows += list(csv.DictReader(io.StringIO(text.read())))
        return rows

    def duration_s(self, run):
        manifest = self.manifest(run)
        return (manifest["end_ns"] - manifest["begin_ns"]) / 1e9


class Terminal:
    """A program on a terminal of its own, as its session's leader."""

    def __init__(self, argv, cwd, env, size=(24, 80)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        termios.tcsetwinsize(self.fd, size)
        self.output = b""

    def read(self, until=None, seconds=15):
        """Reads until `until` has appeared (or, without it, until the end). The new output."""
        begin = len(self.output)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until is not None and until in self.output[begin:]:
                break
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if not ready:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            self.output += data
        return self.output[begin:]

    def send(self, data):
        os.write(self.fd, data)

    def wait(self):
        self.read()
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)
