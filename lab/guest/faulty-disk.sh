# The guest of `cargo xtask lab faulty-disk`: the tests make their disks by loop devices and
# device-mapper, in memory.

# No udev makes the nodes below /dev/mapper here, so dmsetup makes them.
export DM_DISABLE_UDEV=1
export WROTE_TEST_DIR=/tmp
export WROTE_REQUIRE_ALL=1
# A test makes two file systems, and mounts each up to thirty times.
LIMIT_S=1800
