#!/bin/busybox sh
# The first process of the guest: mounts its disks, runs each test within a time limit, reports each
# test's end on the second serial port, and switches the machine off.
#
# `cargo xtask lab nvme` puts this into the initramfs as /init, beside:
#   /modules/load      insmod commands, in the order in which modules need each other
#   /tests/plan        a line for each test: program, name
#   /tests/PROGRAM     the programs
#
# On the second serial port, markers stand at the beginning of a line; a test's output is indented:
#   BOOTED RELEASE     the disks are usable
#   BEGIN PROGRAM NAME
#     ...
#   END PROGRAM NAME CODE    CODE is the exit code, or `timeout`
#   DONE               every test of the plan has run

# An error before the tests ends this process, and the kernel panics: the last lines of the console
# have the reason.
set -e

# Finds a hang; the slowest test takes seconds.
TEST_LIMIT_S=300
RESULTS=/dev/ttyS1

/bin/busybox mkdir -p /proc /sys /dev /tmp /run /mnt /sbin /usr/bin /usr/sbin
/bin/busybox --install -s
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
stty -F "$RESULTS" raw
. /modules/load

# Each controller's serial number is the type of its file system. The number of nvme0 may change
# from boot to boot, and the controllers appear a while after their driver.
attempts=0
for fs in ext4 xfs; do
    until controller=$(basename "$(dirname "$(grep -lx "$fs *" /sys/class/nvme/*/serial)")") &&
        [ -b "/dev/${controller}n1" ]; do
        attempts=$((attempts + 1))
        [ "$attempts" -lt 300 ] || { echo "no disk $fs came"; exit 1; }
        sleep 0.1
    done
    mkdir -p "/mnt/nvme-$fs"
    mount -t "$fs" -o noatime "/dev/${controller}n1" "/mnt/nvme-$fs"
    grep -x 1 "/sys/block/${controller}n1/queue/io_poll"
done
export WROTE_POLLED_DIRS=/mnt/nvme-ext4,/mnt/nvme-xfs
# Where the tests make their folders.
export WROTE_TEST_DIR=/mnt/nvme-ext4

# A block device with known bytes: those of the program that reads it.
grep -x 1 /sys/block/nullb0/queue/io_poll
dd if=/tests/it of=/dev/nullb0 bs=1M conv=fsync
export WROTE_POLLED_BLOCK_DEVICE=/dev/nullb0

echo "BOOTED $(uname -r)" >"$RESULTS"
set +e

# Tests run in the background: a process that waits in the kernel for a lost transfer cannot be
# killed, and the other tests must still run.
run() {
    number=$((number + 1))
    said=/tmp/said.$number
    ended=/tmp/ended.$number
    ("/tests/$1" --exact "$2" >"$said" 2>&1 </dev/null; echo $? >"$ended") &
    deadline=$(($(date +%s) + TEST_LIMIT_S))
    until [ -s "$ended" ]; do
        if [ "$(date +%s)" -ge "$deadline" ]; then
            killall -9 "$1"
            code=timeout
            return
        fi
        sleep 0.05
    done
    read -r code <"$ended"
}

number=0
while read -r program name; do
    echo "BEGIN $program $name" >"$RESULTS"
    run "$program" "$name"
    sed 's/^/  /' "$said" >"$RESULTS"
    printf '\nEND %s %s %s\n' "$program" "$name" "$code" >"$RESULTS"
done </tests/plan
echo DONE >"$RESULTS"
poweroff -f
