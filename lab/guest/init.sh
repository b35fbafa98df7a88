#!/bin/busybox sh
# The first process of a guest: loads its modules, runs each command of its plan within a time
# limit, reports on the second serial port how each command ended, and switches the machine off.
#
# `lab/src/runs/guest` puts this script into the initramfs as /init, along with:
#   /modules/load      the insmod commands, in the order of the modules' dependencies
#   /guest             the lab's own script, which makes disks usable and may set LIMIT_S
#   /plan              a line for each command: its name, a tab, its command line for the shell
#   /lab/PROGRAM       the programs
#
# On the second serial port, markers begin at the start of a line, and the output of commands is
# indented:
#   BOOTED RELEASE     the disks are usable
#   BEGIN NAME
#     ...
#   END CODE           CODE is the exit code, or `timeout`
#   DONE               every command of the plan has run

# An error before the plan makes this process exit and the kernel panic; the last lines of the
# console show the reason.
set -e

# A time limit that only a hang exceeds; the slowest test takes seconds.
LIMIT_S=300
RESULTS=/dev/ttyS1

/bin/busybox mkdir -p /proc /sys /dev /tmp /run /mnt /sbin /usr/bin /usr/sbin
/bin/busybox --install -s
export PATH=/lab:/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
stty -F "$RESULTS" raw
. /modules/load

# Prints the node of the disk with this serial number. The number in names such as nvme0 may change
# from boot to boot, and the controllers appear some time after their driver has been loaded.
disk() {
    attempts=0
    until controller=$(basename "$(dirname "$(grep -lx "$1 *" /sys/class/nvme/*/serial)")") &&
        [ -b "/dev/${controller}n1" ]; do
        attempts=$((attempts + 1))
        [ "$attempts" -lt 300 ] || { echo "no disk $1 came" >&2; return 1; }
        sleep 0.1
    done
    echo "/dev/${controller}n1"
}

. /guest

echo "BOOTED $(uname -r)" >"$RESULTS"
set +e

# Commands run in the background, because a process that waits in the kernel for a lost transfer
# cannot be killed, and the remaining commands must still run.
run() {
    number=$((number + 1))
    said=/tmp/said.$number
    ended=/tmp/ended.$number
    (eval "$1" >"$said" 2>&1 </dev/null; echo $? >"$ended") &
    deadline=$(($(date +%s) + LIMIT_S))
    until [ -s "$ended" ]; do
        if [ "$(date +%s)" -ge "$deadline" ]; then
            # This kills every process except this one.
            kill -9 -1
            code=timeout
            return
        fi
        sleep 0.05
    done
    read -r code <"$ended"
}

number=0
while IFS='	' read -r name command; do
    echo "BEGIN $name" >"$RESULTS"
    run "$command"
    sed 's/^/  /' "$said" >"$RESULTS"
    printf '\nEND %s\n' "$code" >"$RESULTS"
done </plan
echo DONE >"$RESULTS"
poweroff -f
