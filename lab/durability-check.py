#!/usr/bin/env python3
"""Checks what each way of writing survives: docs/durability.md, "Try it yourself".

usage: unshare -m python3 durability-check.py ext4|xfs|btrfs    (unshare hides and ends the mounts)
"""
import mmap, os, subprocess, sys, tempfile

SIZE, RUNS = 65536, 10
kind = sys.argv[1]
data = mmap.mmap(-1, SIZE)  # aligned, as O_DIRECT wants it
data.write(os.urandom(SIZE))


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def flushes(mount):  # the 16th field; see Documentation/block/stat.rst
    device = os.path.basename(run("findmnt", "-no", "SOURCE", mount))
    return int(open(f"/sys/block/{device}/stat").read().split()[15])


def trial(folder, prepare, flags, sync):
    image, crashed, mount = (os.path.join(folder, n) for n in ("image", "crashed", "mount"))
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    run(f"mkfs.{kind}", "-q", image)
    os.makedirs(mount, exist_ok=True)
    run("mount", "-o", "loop", image, mount)
    try:
        path = os.path.join(mount, "f")
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        prepare(fd)
        os.fsync(fd)
        os.close(fd)
        os.sync()
        fd, before = os.open(path, os.O_RDWR | flags), flushes(mount)
        assert os.pwrite(fd, data, 0) == SIZE
        if sync:
            os.fdatasync(fd)
        sent = flushes(mount) - before  # the acknowledgement: what is on the device now?
        run("cp", "--sparse=always", image, crashed)
        os.close(fd)
    finally:
        run("umount", mount)
    run("mount", "-o", "loop", crashed, mount)
    try:
        found = open(path, "rb").read()
    finally:
        run("umount", mount)
        os.unlink(image), os.unlink(crashed)
    return found == bytes(data), sent


new = lambda fd: None
allocated = lambda fd: os.posix_fallocate(fd, 0, SIZE)
settled = lambda fd: os.pwrite(fd, os.urandom(SIZE), 0)
with tempfile.TemporaryDirectory() as folder:
    for blocks in (new, allocated, settled):
        for flags, way in ((0, "cached"), (os.O_DIRECT, "direct"), (os.O_DSYNC, "O_DSYNC")):
            for sync in (False, True):
                seen = [trial(folder, blocks, flags, sync) for _ in range(RUNS)]
                name = [n for n, b in globals().items() if b is blocks][0]
                print(f"{name:9} {way:7} {'fdatasync' if sync else '':9} "
                      f"kept {sum(k for k, _ in seen)}/{RUNS}  flushes {seen[0][1]}")
