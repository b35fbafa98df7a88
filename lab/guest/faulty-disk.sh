# The guest of `cargo xtask lab faulty-disk`. The tests create their disks in memory, with loop
# devices and device-mapper.

# There is no udev here to create the nodes in /dev/mapper, so dmsetup creates them.
export DM_DISABLE_UDEV=1
export WROTE_TEST_DIR=/tmp
export WROTE_REQUIRE_ALL=1
# A test creates two file systems, and mounts each of them up to thirty times.
LIMIT_S=1800
