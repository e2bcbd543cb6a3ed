"""Becomes a process of a container as a container runtime makes one, from a description in JSON (the first argument):
namespaces of its own, a root with the system's programs and exactly the given mounts, a user, no capabilities. Needs
root; started by container_test.py."""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share", "/etc/passwd", "/etc/group", "/etc/ld.so.cache",
          "/etc/alternatives")


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def mount(source, target, kind=None, flags=0):
    check(LIBC.mount(source.encode(), target.encode(), kind and kind.encode(), flags, None), f"mount {target}")


def bind(source, target, read_only):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "a").close()
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


def build_root(container):
    root = container["root"]
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID)
    for path in SYSTEM:
        if os.path.exists(path):
            bind(os.path.realpath(path), root + path, True)
    for name in ("bin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
        elif os.path.isdir(f"/{name}"):
            bind(f"/{name}", f"{root}/{name}", True)
    for device in ("null", "zero", "urandom"):
        bind(f"/dev/{device}", f"{root}/dev/{device}", False)
    os.makedirs(f"{root}/proc")
    if container["host_pid"]:
        mount("/proc", f"{root}/proc", None, MS_BIND | MS_REC)
    else:
        mount("proc", f"{root}/proc", "proc")
    for source, target, read_only in container["mounts"]:
        bind(source, root + target, read_only)
    for path in container["masked"]:
        mount("tmpfs", root + path, "tmpfs", MS_RDONLY)


def enter(container):
    build_root(container)
    loopback_up()
    root = container["root"]
    os.chdir(root)
    os.makedirs("old", exist_ok=True)
    check(LIBC.syscall(155, b".", b"old"), "pivot_root")  # x86_64
    os.chdir("/")
    check(LIBC.umount2(b"/old", MNT_DETACH), "umount of the old root")
    os.rmdir("/old")
    mount("none", "/", None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def main():
    container = json.loads(sys.argv[1])
    if "--inside" not in sys.argv:
        flags = ["--mount", "--cgroup", "--ipc", "--uts", "--net"]
        flags += [] if container["host_pid"] else ["--pid", "--fork", "--kill-child"]
        flags += ["--time", "--monotonic", "1000"] if container.get("own_time") else []
        os.execvp("unshare", ["unshare", *flags, sys.executable, __file__, sys.argv[1], "--inside"])
    enter(container)
    os.chdir(container["directory"])
    drop = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", f"--reuid={container['uid']}",
            f"--regid={container['gid']}",
            f"--groups={','.join(map(str, container['groups']))}" if container["groups"] else "--clear-groups"]
    words = drop + container["command"]
    if container["host_pid"]:
        os.execvpe(words[0], words, container["environment"])
    # The first process of a pid namespace: ends with what it started.
    sys.exit(subprocess.run(words, env=container["environment"]).returncode)


if __name__ == "__main__":
    main()
