"""Power cuts: a file system stops at once, without writing what it still holds; the disk image is copied and judged.

The server works on an ext4 image. The cut is the file system's own: from one moment on nothing reaches the image, the
journal included (EXT4_IOC_SHUTDOWN without a flush). The server is killed, the image copied, and the copy judged by what the
clients were answered before the cut; then the server goes on with the image itself. Answers that come after the cut count
for nothing, because a machine without power gives none: a sync that was under way may return as if it had succeeded.
"""

import os
import random
import struct
import subprocess
import time

import pytest

from support.scale import scaled
from support.server_process import ServerProcess, examples
from web.server.storage.test_crash import Load, judge, marked

fcntl = pytest.importorskip("fcntl")
SHUTDOWN, WITHOUT_FLUSH = (2 << 30) | (4 << 16) | (ord("X") << 8) | 125, 2
IMAGE_BYTES = 256 << 20


class Disk:
    """A disk image, its mount point, and power cuts."""

    def __init__(self, folder):
        self.image, self.mount_point = folder / "image", folder / "disk"
        self.mount_point.mkdir()
        self.image.touch()
        os.truncate(self.image, IMAGE_BYTES)
        run("mkfs.ext4", "-q", "-F", "-m0", self.image)

    def mount(self, image=None):
        run("mount", "-o", "loop", image or self.image, self.mount_point)

    def unmount(self):
        for _ in range(100):
            if subprocess.run(["umount", self.mount_point], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise OSError(f"{self.mount_point} cannot be unmounted")

    def cut_power(self):
        folder = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(folder)


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path):
    try:
        disk = Disk(tmp_path)
        disk.mount()
        disk.cut_power()
        disk.unmount()
        disk.mount()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk image can be mounted: {error}")
    yield disk
    subprocess.run(["umount", "-l", disk.mount_point], capture_output=True)


@pytest.mark.crash
@pytest.mark.parametrize(
    "wanted",
    [pytest.param(scaled(2), id="slow", marks=pytest.mark.slow), pytest.param(50, id="soak", marks=pytest.mark.soak)],
)
def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path, disk, wanted):
    chance = random.Random(os.environ.get("SEPARATRIX_SEED", "0"))
    folder = tmp_path / "state"  # with its log elsewhere
    folder.symlink_to(disk.mount_point / "state")
    (disk.mount_point / "state").mkdir()
    os.sync()
    sent, acknowledged, cuts = [], [], 0
    while cuts < wanted:
        server = ServerProcess(folder, "--snapshot-every", "0.3").start()
        try:
            streams = [marked(examples(4000, seed=chance.getrandbits(32)), f"{cuts}-{k}") for k in range(2)]
            loads = [Load(server.url, stream, chance.getrandbits(32), patience=0) for stream in streams]
            for load in loads:
                load.start()
            time.sleep(0.2 + chance.random())
            acknowledged += [name for load in loads for name in list(load.acknowledged)]
            disk.cut_power()
        finally:
            server.kill()
        for load in loads:
            load.join(60)
        sent += [pair for stream in streams for pair in stream]
        cuts += 1
        disk.unmount()
        run("cp", "--sparse=always", disk.image, tmp_path / "copy")
        disk.mount(tmp_path / "copy")
        judge(folder, sent, acknowledged)
        disk.unmount()
        disk.mount()
        print(f"{cuts} power cuts, {len(acknowledged):,} examples acknowledged: none lost, none counted twice", flush=True)
    assert acknowledged
