"""Is the network filesystem of the data sets mounted, and fast enough?"""

import os
import time
from pathlib import Path

import pytest

BLOCK = 1 << 20  # bytes written and read at a time


@pytest.mark.costs(60)
@pytest.mark.measures("site_mount_free", "site_mount_write", "site_mount_read")
def test_rates(check, settings):
    """The network mount is there, has room, and writes and reads a file at the declared rates.

    The file is written with fsync, and read after its pages were dropped from the cache of this
    machine; what the server itself still has in memory counts.
    """
    mount = Path(settings["mount"])
    if settings["must_be_mount"] and not os.path.ismount(mount):
        raise RuntimeError(f"{mount} is not mounted: mount it, or correct it in network_mount.toml")
    status = os.statvfs(mount)
    check("site_mount_free", status.f_bavail * status.f_frsize / 2**30)
    file = mount / f".rigproof-{os.getpid()}-{time.time_ns()}"
    size, block = settings["mib"] * BLOCK, os.urandom(BLOCK)
    try:
        check("site_mount_write", size / write(file, block, settings["mib"]) / 1e9)
        check("site_mount_read", size / read(file, block) / 1e9)
    finally:
        file.unlink(missing_ok=True)


def write(file, block, count):
    """Seconds to write a new file and to have it on the server."""
    begin = time.monotonic()
    with file.open("xb", buffering=0) as opened:
        for _ in range(count):
            opened.write(block)
        os.fsync(opened.fileno())
    return time.monotonic() - begin


def read(file, block):
    """Seconds to read the file back; every block must be as it was written."""
    with file.open("rb", buffering=0) as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.monotonic()
        while found := opened.read(len(block)):
            if found != block:
                raise RuntimeError(f"{file} did not come back as it was written")
        return time.monotonic() - begin
