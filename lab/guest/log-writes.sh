# The guest of `cargo xtask lab log-writes`. For each file system FS, it has a disk with the serial
# number FS, and a disk FS-log for the log of all writes.

# There is no udev here to create the nodes in /dev/mapper, so dmsetup creates them.
export DM_DISABLE_UDEV=1
# The server's clients run on the same machine.
ifconfig lo 127.0.0.1 up
# A time limit that only a hang exceeds; a slow machine takes minutes.
LIMIT_S=3600

# The file system is on a loop device over the log-writes device. The log-writes device logs writes
# in the wrong order if two flushes are in flight at once: the writes that the first flush must make
# stable are logged after the second flush, which may complete first. A loop device has only one
# flush in flight at a time. The shell's own losetup does not support direct I/O.
#
# begin FS: mounts the disk through a log-writes device.
begin() {
    disk=$(disk "$1") && log=$(disk "$1-log") || return
    sectors=$(cat "/sys/block/$(basename "$disk")/size")
    dmsetup create recorded --table "0 $sectors log-writes $disk $log" || return
    /lab/losetup --direct-io=on /dev/loop0 /dev/mapper/recorded || return
    mount -t "$1" /dev/loop0 /mnt && mkdir /mnt/moment && sync
}

# end: marks the end of the log, and unmounts the disk.
end() {
    dmsetup message recorded 0 mark end || return
    # The kernel closes a ring's files a moment after their process has ended.
    attempts=0
    until umount /mnt; do
        attempts=$((attempts + 1))
        [ "$attempts" -lt 100 ] || return 1
        sleep 0.1
    done
    /lab/losetup --detach /dev/loop0 && dmsetup remove --retry recorded
}

# record FS SEED ENTRIES SUBJECT...: lets the subjects write until the log has ENTRIES entries.
record() {
    fs=$1 seed=$2 entries=$3
    shift 3
    begin "$fs" && mkdir -p "/tmp/$fs" || return
    for subject in "$@"; do
        lab power-cut write "$subject" /mnt/moment --seed "$seed" --marks recorded \
            >"/tmp/$fs/$subject" 2>"/tmp/$fs/$subject.errors" &
    done
    # A subject exits on its own only after an error.
    until [ "$(dmsetup status recorded | cut -d ' ' -f 4)" -ge "$entries" ] ||
        grep . "/tmp/$fs/"*.errors; do
        sleep 1
    done
    killall -9 lab
    wait
    for subject in "$@"; do
        echo "FACT: $fs: $subject: $(wc -l <"/tmp/$fs/$subject") lines"
    done
    end && ! grep . "/tmp/$fs/"*.errors
}

# programs FS SEED COUNT: traces drawn programs.
programs() {
    begin "$1" &&
        lab programs --program /lab/wrote --folder /mnt/moment --marks recorded \
            --from-seed "$2" --seeds "$3" && end
}
