# The guest of `cargo xtask lab nvme`: mounts its disks, whose serial numbers are the types of their
# file systems, and names them for the tests.

for fs in ext4 xfs; do
    node=$(disk "$fs")
    mkdir -p "/mnt/nvme-$fs"
    mount -t "$fs" -o noatime "$node" "/mnt/nvme-$fs"
    grep -x 1 "/sys/block/$(basename "$node")/queue/io_poll"
done
export WROTE_POLLED_DIRS=/mnt/nvme-ext4,/mnt/nvme-xfs
# The folder in which the tests create theirs.
export WROTE_TEST_DIR=/mnt/nvme-ext4

# A block device whose content is known: it contains the program that reads it.
grep -x 1 /sys/block/nullb0/queue/io_poll
dd if=/lab/it of=/dev/nullb0 bs=1M conv=fsync
export WROTE_POLLED_BLOCK_DEVICE=/dev/nullb0
