"""Markers: name the intervals of a program whose energy you want.

A marker reads the monotonic clock and writes 64 bytes into a mapped file below ERGOMETER_RUN (the layout is in
docs/run-format.md, "Markers"). No function here raises because of the file: if it cannot be created or the disk is
full, markers turn themselves off.

Regions nest by thread: a region stands inside the innermost one that its thread has open. Coroutines of one thread
that interleave are told apart by their begin and end and get the right times; only their nesting follows the order in
which they began. A forked child writes its own file, and regions begun before the fork are the parent's.
"""

import functools
import inspect
import itertools
import mmap
import os
import re
import socket
import struct
import threading
import time

_RECORD = 64
_CHUNK_SHIFT = 11  # records a chunk: 2048, that is 128 KiB
_CHUNK_MASK = (1 << _CHUNK_SHIFT) - 1
_CHUNK_BYTES = _RECORD << _CHUNK_SHIFT
_MAX_CHUNKS = 131072
_TEXT = 24
_NAME_BYTES = 1000
_VALUE_BYTES = 4096
_SLOT_BITS = 48
_SLOT_MASK = (1 << _SLOT_BITS) - 1

_BEGIN, _NUMBER, _CONTINUATION, _STRING = 1, 3, 4, 5

# kind, length, more, reserved, tid, id, t_ns, index, value, text. In native layout, which is the file's on the
# little-endian machines that it is written on, eight bytes are stored at once: a reader never sees half a number.
_pack_whole = struct.Struct("BBBBiQqqq24s").pack_into
_pack_number = struct.Struct("BBBBiQqqd24s").pack_into
_pack_end = struct.Struct("q").pack_into
_read_end = struct.Struct("q").unpack_from
_END_OFFSET = 32

_now = time.monotonic_ns


class _Local(threading.local):
    """The kernel's id of the thread, asked for once: the system call costs more than the rest of a marker."""

    def __init__(self):
        self.tid = threading.get_native_id()


_local = _Local()

_active = None  # None: not started, True: active, False: off
_lock = threading.Lock()
_path = None
_chunks = []
_next_slot = itertools.count(1).__next__  # slot 0 is the header; one call is atomic
_forks = 0  # shifted into the handles, so that a child does not end its parent's regions
_names = {}  # name -> (length, continuation records, first 24 bytes, the rest)


def _rank():
    # The most specific launcher first; torchrun's RANK last, since others use that name for other things.
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"):
        value = os.environ.get(name, "")
        if value.isascii() and value.isdigit() and int(value) < 1 << 31:
            return int(value)
    return -1


def _start_ticks():
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _map_chunk(path, index, create):
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if create else 0)
    fd = os.open(path, flags, 0o666)
    try:
        # The blocks are allocated now: a full disk must show here and not as SIGBUS in a store into the mapping.
        os.posix_fallocate(fd, index * _CHUNK_BYTES, _CHUNK_BYTES)
        return mmap.mmap(fd, _CHUNK_BYTES, offset=index * _CHUNK_BYTES)
    except OSError:
        if create:
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def _start():
    """Creates the file at the first marker; returns whether markers are active."""
    global _active
    with _lock:
        # Other threads wait here meanwhile: until the file is there, they must not see an end of it.
        if _active is None:
            _active = _open_file()
        return _active


def _open_file():
    global _path
    run = os.environ.get("ERGOMETER_RUN")
    if not run or not os.path.isdir(run):
        return False
    created = _now()
    folder = os.path.join(os.path.realpath(run), "markers")
    host = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname()) or "host"
    path = os.path.join(folder, "%s-%d-%d.erg" % (host, os.getpid(), created))
    try:
        os.makedirs(folder, exist_ok=True)
        chunk = _map_chunk(path, 0, True)
    except OSError:
        return False
    # The magic last: with it the rest is there.
    chunk[8:64] = struct.pack("<IiiIqQ24x", _RECORD, os.getpid(), _rank(), 0, created, _start_ticks())
    chunk[0:8] = b"ERGMARK1"
    _chunks.append(chunk)
    _path = path
    return True


def _grow(index):
    """The chunk, mapped now; None when markers are off."""
    global _active
    with _lock:
        try:
            while len(_chunks) <= index and _active and index < _MAX_CHUNKS:
                _chunks.append(_map_chunk(_path, len(_chunks), False))
                if len(_chunks) > 2 and hasattr(mmap.mmap, "madvise"):
                    # Full chunks need not count as this process's memory.
                    _chunks[-3].madvise(mmap.MADV_DONTNEED)
            return _chunks[index]
        except (OSError, IndexError):
            _active = False
            return None


def _after_fork_in_child():
    global _active, _lock, _local, _next_slot, _forks
    _lock = threading.Lock()
    _local = _Local()
    _chunks.clear()
    _next_slot = itertools.count(1).__next__
    _forks = (_forks + (1 << _SLOT_BITS)) & 0xFFFF << _SLOT_BITS
    if _active:
        _active = None


os.register_at_fork(after_in_child=_after_fork_in_child)

_UNSAFE = {ord("/"): "_", ord("["): "_", ord("]"): "_", 0x7F: "_"}
_UNSAFE.update({code: "_" for code in range(32)})


def _cut(text, limit):
    """UTF-8 of `text`, cut to `limit` bytes without cutting a character in two."""
    data = text.encode("utf-8", "replace")
    return data if len(data) <= limit else data[:limit].decode("utf-8", "ignore").encode()


def _name_parts(name):
    data = _cut(str(name).translate(_UNSAFE) or "_", _NAME_BYTES)
    parts = (min(len(data), _TEXT), -(-len(data[_TEXT:]) // _TEXT), data[:_TEXT], data[_TEXT:])
    if len(_names) < 10000:
        _names[name] = parts
    return parts


def _slots(count):
    """First of `count` slots side by side."""
    global _next_slot
    with _lock:
        # Others may take a slot at any moment: what they take in between stays empty.
        first = _next_slot()
        run = 1
        while run < count:
            slot = _next_slot()
            if slot == first + run:
                run += 1
            else:
                first, run = slot, 1
        return first


def _continue(first, ident, rest):
    for i in range(0, len(rest), _TEXT):
        slot = first + 1 + i // _TEXT
        part = rest[i : i + _TEXT]
        index = slot >> _CHUNK_SHIFT
        chunk = _chunks[index] if index < len(_chunks) else _grow(index)
        if chunk is None:
            return False
        at = (slot & _CHUNK_MASK) << 6
        _pack_whole(chunk, at, 0, len(part), 0, 0, _local.tid, ident, 0, 0, 0, part)
        chunk[at] = _CONTINUATION
    return True


def begin(name, index=None):
    """Begins a region and returns its handle (0 when inactive), for end(), number() and text()."""
    if _active is not True and (_active is False or not _start()):
        return 0
    parts = _names.get(name)
    if parts is None:
        parts = _name_parts(name)
    length, more, head, rest = parts
    slot = _slots(1 + more) if more else _next_slot()
    try:
        chunk = _chunks[slot >> _CHUNK_SHIFT]
    except IndexError:
        chunk = _grow(slot >> _CHUNK_SHIFT)
        if chunk is None:
            return 0
    if more and not _continue(slot, slot, rest):
        return 0
    at = (slot & _CHUNK_MASK) << 6
    _pack_whole(
        chunk, at, 0, length, more, 0, _local.tid, slot, _now(), -1 if index is None or index < 0 else index, 0, head
    )
    chunk[at] = _BEGIN
    return slot | _forks


def end(handle):
    """Ends a region; any thread. A second end does nothing."""
    if not handle or not _active:
        return
    now = _now()
    if handle & ~_SLOT_MASK != _forks:
        return
    chunk = _chunks[(handle & _SLOT_MASK) >> _CHUNK_SHIFT]
    at = ((handle & _CHUNK_MASK) << 6) + _END_OFFSET
    if _read_end(chunk, at)[0] == 0:
        _pack_end(chunk, at, now)


def _attribute(handle, kind, key, pack, value, rest=b""):
    if not handle or not _active or handle & ~_SLOT_MASK != _forks:
        return
    data = _cut(str(key), _TEXT)
    if not data:
        return
    ident = handle & _SLOT_MASK
    more = -(-len(rest) // _TEXT)
    slot = _slots(1 + more) if more else _next_slot()
    index = slot >> _CHUNK_SHIFT
    chunk = _chunks[index] if index < len(_chunks) else _grow(index)
    if chunk is None or (more and not _continue(slot, ident, rest)):
        return
    at = (slot & _CHUNK_MASK) << 6
    pack(chunk, at, 0, len(data), more, 0, _local.tid, ident, 0, -1, value, data)
    chunk[at] = kind


def number(handle, key, value):
    """Attaches a number to an open region. The keys samples, tokens and molecules also give energy per piece."""
    _attribute(handle, _NUMBER, key, _pack_number, float(value))


def text(handle, key, value):
    """Attaches a text to an open region."""
    _attribute(handle, _STRING, key, _pack_whole, 0, _cut(str(value), _VALUE_BYTES))


class Region:
    """A region as a context manager or a decorator; see region()."""

    __slots__ = ("name", "index", "_handles")

    def __init__(self, name, index=None):
        self.name = name
        self.index = index
        self._handles = []

    def __enter__(self):
        if _active is not False:
            self._handles.append(begin(self.name, self.index))
        return self

    def __exit__(self, *_):
        if self._handles:
            end(self._handles.pop())
        return False

    def set(self, key, value):
        """Attaches a number (anything that float() takes, but no str) or a text to the region that is open."""
        if not self._handles or not self._handles[-1]:
            return
        if isinstance(value, str):
            text(self._handles[-1], key, value)
            return
        try:
            number(self._handles[-1], key, value)
        except (TypeError, ValueError, OverflowError):
            text(self._handles[-1], key, str(value))

    def __call__(self, function):
        """Decorates a function or coroutine function: each call is a region of its own, in any thread."""
        name, index = self.name, self.index
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def marked_async(*args, **kwargs):
                handle = begin(name, index)
                try:
                    return await function(*args, **kwargs)
                finally:
                    end(handle)

            return marked_async

        @functools.wraps(function)
        def marked(*args, **kwargs):
            handle = begin(name, index)
            try:
                return function(*args, **kwargs)
            finally:
                end(handle)

        return marked


region = Region
