//! Tests of refusals and their messages.

use super::problem;

#[test]
fn each_error_is_one_line_with_its_number() {
    for (text, told) in [
        ("", "no job in this file; a job begins with its name: [job]"),
        ("[global]\nsize=1m", "no job in this file; a job begins with its name: [job]"),
        (
            "size=1m\n[a]",
            "line 1: size=1m: stands before the first section; a job begins with its name: [job]",
        ),
        ("[a", "line 1: [a: a section's line ends with ], and nothing may follow it"),
        ("[a] b", "line 1: [a] b: a section's line ends with ], and nothing may follow it"),
        ("[ ]", "line 1: [ ]: the section has no name"),
        ("[global2]", "line 1: [global2]: write [global], or name the job otherwise"),
        ("[Global]", "line 1: [Global]: write [global], or name the job otherwise"),
        ("a\0b", "line 1: has a zero byte, so it is not a job file"),
        ("[a]\ninclude other.fio", "line 2: include other.fio: there is no such file"),
        ("[a]\ninclude round.fio", "line 1: include round.fio: includes itself"),
        ("[a]\n=4", "line 2: =4: there is no key before the ="),
        ("[a]\n\niodepht=64", "line 3: iodepht=64: no such key; did you mean iodepth?"),
        ("[a]\nSIZE=1m", "line 2: SIZE=1m: no such key; did you mean size?"),
        ("[a]\ngibberish", "line 2: gibberish: no such key"),
        (
            "[a]\niodepth_low=8",
            "line 2: iodepth_low=8: fio has this key, but it is not supported here: the depth is \
             the one that iodepth says",
        ),
        (
            "[a]\nrwmixcycle=10",
            "line 2: rwmixcycle=10: fio has this key, but it is not supported here: the mix is \
             drawn anew for each operation; fio itself ignores this key",
        ),
        ("[a]\nratemin=1m", "line 2: ratemin=1m: no job is ended for being slow (supported: 0)"),
        (
            "[a]\nexec_prerun=ls",
            "line 2: exec_prerun=ls: fio has this key, but it is not supported here: commands are \
             not run",
        ),
        ("[a]\nsize=${NOPE}", "line 2: size=${NOPE}: the environment variable NOPE is not set"),
        ("[a]\nsize=${SIZE", "line 2: size=${SIZE: the } of ${ is missing"),
        ("[a]\nsize", "line 2: size: has no value"),
        ("[a]\nsize=", "line 2: size=: has no value"),
        ("[a]\ndirect=", "line 2: direct=: has no value"),
        ("[a]\ndirect=yes", "line 2: direct=yes: must be 0 or 1"),
        ("[a]\nsize=big", "line 2: size=big: does not begin with a number"),
        (
            "[a]\nsize=1x",
            "line 2: size=1x: x is not a unit; the units are k, m, g, t and p, each also with b or \
             iB",
        ),
        (
            "[a]\nsize=1.5g",
            "line 2: size=1.5g: has a fraction, which fio would drop; write a whole number",
        ),
        ("[a]\nsize=-1", "line 2: size=-1: can't be negative"),
        ("[a]\nsize=4z", "line 2: size=4z: zones of zoned devices are not supported: write bytes"),
        ("[a]\nsize=150%", "line 2: size=150%: percents are from 0% to 100%"),
        (
            "[a]\npercentage_random=20,130",
            "line 2: percentage_random=20,130: must be a whole number from 0 to 100",
        ),
        (
            "[a]\ntime_based\nruntime=1\nnumber_ios=5",
            "line 4: number_ios=5: has no effect with time_based, which runs until runtime ends, \
             as in fio",
        ),
        (
            "[a]\nsize=(4*1024)",
            "line 2: size=(4*1024): arithmetic is not supported: write the \
                                number",
        ),
        ("[a]\nsize=9999999p", "line 2: size=9999999p: is more than 2^63 - 1"),
        (
            "[a]\nkb_base=1000\nsize=4ki",
            "line 3: size=4ki: ki is 1024 in fio's manual and 1000 in fio with kb_base=1000; write \
             k or kiB",
        ),
        ("[a]\nbs=0", "line 2: bs=0: a block is at least 1 byte"),
        ("[a]\nbs=2g", "line 2: bs=2g: a block is at most 1 GiB"),
        (
            "[a]\nbs=4k-16k",
            "line 2: bs=4k-16k: is a range; use bsrange for that, and bssplit for shares",
        ),
        ("[a]\nbs=4k/50", "line 2: bs=4k/50: is a split; use bssplit for that"),
        (
            "[a]\nbs=1,2,3,4",
            "line 2: bs=1,2,3,4: there are at most three values: of reads, writes and trims",
        ),
        (
            "[a]\nbssplit=4k/60:8k/50",
            "line 2: bssplit=4k/60:8k/50: the percents add up to 110, not 100",
        ),
        (
            "[a]\nbssplit=4k/40:8k/50",
            "line 2: bssplit=4k/40:8k/50: the percents add up to 90, not 100",
        ),
        ("[a]\nsize=1m\nbs=2m", "line 2: size=1m: 1 MiB is less than a block of 2 MiB"),
        (
            "[a]\nsize=16k\nnrfiles=2\nbs=16k",
            "line 2: size=16k: its share of 2 files, 8 KiB, is less than a block of 16 KiB",
        ),
        ("[a]\nfilesize=4k\noffset=4k", "line 2: filesize=4k: the job begins beyond it"),
        ("[a]\nio_size=50%", "line 2: io_size=50%: is a share of size, but no size is given"),
        ("[a]\nba=512", "line 2: ba=512: offsets are multiples of the block size, 4 KiB"),
        (
            "[a]\nrw=trim",
            "line 2: rw=trim: fio trims only block devices, and jobs here never \
            change those",
        ),
        (
            "[a]\nrandom_distribution=zoned:50/10:40/90",
            "line 2: random_distribution=zoned:50/10:40/90: the percents of operations add up to \
             90, not 100",
        ),
        (
            "[a]\nrandom_distribution=pareto:1",
            "line 2: random_distribution=pareto:1: the power of pareto is between 0 and 1",
        ),
        (
            "[a]\nrandom_distribution=zipf:1:2",
            "line 2: random_distribution=zipf:1:2: the most used blocks are scattered here: leave \
             out the centre",
        ),
        (
            "[a]\nrandom_distribution=normal:10",
            "line 2: random_distribution=normal:10: fio's own normal is not the one of its manual; \
             use zipf or zoned",
        ),
        (
            "[a]\nrw=write:8k",
            "line 2: rw=write:8k: sequential operations have no steps between them: leave out the \
             :",
        ),
        (
            "[a]\n[b]\nwait_for=a",
            "line 3: wait_for=a: fio has this key, but it is not supported here: jobs run at once, \
             or after all jobs before; use stonewall",
        ),
        (
            "[a]\nrw=randread:8",
            "line 2: rw=randread:8: each operation has its own random offset: leave out the :",
        ),
        (
            "[a]\nrw=WRITE",
            "line 2: rw=WRITE: must be read, write, rw, randread, randwrite or randrw; did you \
             mean write?",
        ),
        ("[a]\nrwmixread=101", "line 2: rwmixread=101: must be a whole number from 0 to 100"),
        ("[a]\niodepth=0", "line 2: iodepth=0: must be a whole number from 1 to 4096"),
        ("[a]\niodepth=5000", "line 2: iodepth=5000: must be a whole number from 1 to 4096"),
        ("[a]\nnumjobs=300", "line 2: numjobs=300: must be a whole number from 1 to 256"),
        (
            "[a]\niodepth=64",
            "line 2: iodepth=64: ioengine=psync, the default, does one operation at a time (fio \
             would silently use 1): use ioengine=io_uring, or leave out iodepth",
        ),
        (
            "[a]\niodepth=64\nioengine=sync",
            "line 2: iodepth=64: ioengine=sync does one operation at a time (fio would silently \
             use 1): use ioengine=io_uring, or leave out iodepth",
        ),
        (
            "[a]\nioengine=rdma",
            "line 2: ioengine=rdma: no such engine here; the engines are psync, io_uring, mmap, \
             sync, vsync, pvsync, pvsync2, libaio, posixaio",
        ),
        (
            "[a]\nioengine=mmap\ndirect=1",
            "line 3: direct=1: ioengine=mmap goes through the page cache; use psync or io_uring to \
             bypass it",
        ),
        ("[a]\nverify=md6", "line 2: verify=md6: no such checksum; only crc32c is used here"),
        (
            "[a]\nsteadystate=iops",
            "line 2: steadystate=iops: must be iops, iops_slope, bw or bw_slope, a : and a limit, \
             as in iops:2%",
        ),
        ("[a]\ntime_based", "line 2: time_based: needs runtime"),
        (
            "[a]\nruntime=5w",
            "line 2: runtime=5w: w is not a unit of time; the units are us, ms, s, m, h and d",
        ),
        (
            "[a]\nruntime=1.5s",
            "line 2: runtime=1.5s: has a fraction, which fio would drop; write a whole number",
        ),
        ("[a]\nstartdelay=1-5", "line 2: startdelay=1-5: takes one value, and these are several"),
        (
            "[a]\nrate=1m\nrate_iops=10",
            "line 3: rate_iops=10: conflicts with a rate: give one of the two",
        ),
        ("[a]\nfilename=-", "line 2: filename=-: - is a stream, which has no offsets; name a file"),
        (
            "[a]\nfilename=x:/dev/stdin",
            "line 2: filename=x:/dev/stdin: /dev/stdin is a stream, which has no offsets; name a \
             file",
        ),
        ("[a]\nfilename=:", "line 2: filename=:: names nothing"),
        (
            "[a]\nunlink_each_loop=1",
            "line 2: unlink_each_loop=1: unlink removes the files once, after all loops \
             (supported: 0)",
        ),
        (
            "[a]\nfile_service_type=random",
            "line 2: file_service_type=random: files are served in turn (supported: roundrobin)",
        ),
        (
            "[a]\npercentile_list=50,90",
            "line 2: percentile_list=50,90: 50,90 is not a number above 0 and up to 100; : is \
             between them",
        ),
        (
            "[a]\nzero_buffers\nbuffer_compress_percentage=50",
            "line 3: buffer_compress_percentage=50: conflicts with zero_buffers=1: zeros compress \
             more than any percentage",
        ),
        (
            "[a]\nzero_buffers\nbuffer_pattern=0x1",
            "line 3: buffer_pattern=0x1: conflicts with zero_buffers and \
             buffer_compress_percentage: give one of them",
        ),
        (
            "[a]\nnumjobs=256\nnrfiles=1025",
            "line 3: nrfiles=1025: must be a whole number from 1 to 1024",
        ),
    ] {
        assert_eq!(problem(text), told, "{text}");
    }
}

#[test]
fn all_wrong_lines_are_told_at_once_in_their_order() {
    let text = "[global]\nfinish=1\n[a]\niodeph=4\nrw=wirte\noutput-format=json\ninclude b\n\
                [b]\nfoo=2\nsize=${NOPE}\n[c\ndirect=yes\n";
    assert_eq!(
        problem(text),
        "line 2: finish=1: no such key\n\
         line 4: iodeph=4: no such key; did you mean iodepth?\n\
         line 5: rw=wirte: must be read, write, rw, randread, randwrite or randrw; did you mean \
         write?\n\
         line 6: output-format=json: is an option of fio's command line, not a key for a job\n\
         line 7: include b: there is no such file\n\
         line 9: foo=2: no such key\n\
         line 10: size=${NOPE}: the environment variable NOPE is not set\n\
         line 11: [c: a section's line ends with ], and nothing may follow it\n\
         line 12: direct=yes: must be 0 or 1"
    );
}

#[test]
fn a_wrong_line_brings_no_error_that_only_follows_from_it() {
    // With the engine that was meant, the depth would be right.
    let alone = "line 2: ioengien=io_uring: no such key; did you mean ioengine?";
    let of = |section: &str, second: &str| {
        format!("[{section}]\nioengien=io_uring\n[{second}]\niodepth=8\n[b]\n")
    };
    assert_eq!(problem(&of("global", "a")), alone);
    let two = format!("{alone}\nline 4: iodepth=8: ioengine=psync, the default, does");
    assert!(problem(&of("a", "c")).starts_with(&two), "jobs that are whole are checked as well");
    assert_eq!(problem(&of("a", "c")).lines().count(), 2);
}

#[test]
fn all_wrong_combinations_of_a_job_are_told_at_once() {
    let all = problem("[a]\niodepth=64\ntime_based\nzero_buffers\nbuffer_pattern=0x1\n");
    let keys: Vec<&str> = all.lines().filter_map(|line| line.split(['=', ':']).nth(1)).collect();
    assert_eq!(keys, [" iodepth", " time_based", " buffer_pattern"]);
}
