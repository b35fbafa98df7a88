//! Tests of the meaning of job files, and of the messages about them.

mod any_text;
mod listed;
mod wrong;

use super::*;
use crate::spec::{BlockShare, BlockSizes, Data, Fallocate, READ, SyncEach, Verify};
use wrote::Ioengine;
use wrote_result::document::Process;

/// The job file from an article on fast file I/O (Ozgur Akkurt, 2025), as published.
const ARTICLE: &str = "\
[global]
direct=1
bs=512K
rw=write
ioengine=io_uring
iodepth=64
size=16g
hipri=1
fixedbufs=1
registerfiles=0
sqthread_poll=1
numjobs=1

[job0]
filename=testfile
";

fn environment(name: &str) -> Option<String> {
    (name == "SIZE").then(|| "8k".to_string())
}

fn surroundings(overrides: &[(String, Option<String>)]) -> Surroundings<'_> {
    Surroundings {
        environment: &environment,
        cpus: 3,
        page_bytes: 4096,
        memory_mib: 1000,
        seed: 7,
        overrides,
        sections: &[],
        include: &included,
        as_fio: false,
    }
}

/// Returns the files that `include` finds.
fn included(name: &str) -> Result<String, String> {
    match name {
        "half.fio" => Ok("bs=8k\ninclude more.fio\n".into()),
        "more.fio" => Ok("iodepth=1\n".into()),
        "round.fio" => Ok("include round.fio\n".into()),
        _ => Err("there is no such file".into()),
    }
}

fn read(text: &str) -> Result<Parsed, Vec<ParseError>> {
    parse(text, &surroundings(&[]))
}

/// Returns the only job of a section `[a]` with these lines, which is 1 MiB long by default.
fn job(lines: &str) -> JobSpec {
    let text = format!("[a]\nsize=1m\n{lines}\n");
    let mut jobs = read(&text).unwrap_or_else(|errors| panic!("{text}{errors:?}")).jobs;
    assert_eq!(jobs.len(), 1, "{text}");
    jobs.remove(0)
}

fn problem(text: &str) -> String {
    let errors = read(text).map(|parsed| parsed.jobs).expect_err(text);
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn notes(text: &str) -> Vec<String> {
    let parsed = read(text).unwrap_or_else(|errors| panic!("{text}{errors:?}"));
    parsed.notes.iter().map(ToString::to_string).collect()
}

fn paths(job: &JobSpec) -> Vec<&str> {
    job.files.paths.iter().map(|path| path.to_str().expect("text")).collect()
}

#[test]
fn defaults_are_those_of_fio() {
    let job = job("");
    let (files, pace) = (&job.files, &job.pace);
    assert_eq!(job.order.rw, READ);
    assert_eq!((job.io.ioengine, job.io.iodepth, job.clone, job.group), (Ioengine::Psync, 1, 0, 0));
    assert_eq!(job.order.read_bs, BlockSizes::one(4096));
    assert_eq!(
        (files.fallocate, job.writes.sync, &job.writes.data),
        (Fallocate::Native, SyncEach::No, &Data::Random)
    );
    assert_eq!((files.file_bytes, pace.io_bytes, files.offset_bytes), (Some(1 << 20), None, 0));
    assert!(files.invalidate && !job.io.direct && !job.order.norandommap && !pace.time_based);
    assert_eq!((pace.loops, job.order.rwmixread_percent, job.writes.verify), (1, 50, None));
    assert_eq!(job.percentiles.len(), 17);
    assert_eq!(paths(&job), ["a.0.0"]);
    let words = |pair: &(String, String)| format!("{}={}", pair.0, pair.1);
    let options: Vec<String> = job.options.iter().map(words).collect();
    assert_eq!(options, ["size=1m", "rw=read", "bs=4k", "iodepth=1", "numjobs=1"]);
}

#[test]
fn global_sections_are_for_the_jobs_below_them_and_jobs_have_the_last_word() {
    let parsed = read(
        "[global]\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\nreadwrite=write\nbs=32k\n[b]\n\
         stonewall\n",
    )
    .expect("jobs");
    let bytes: Vec<u64> = parsed.jobs.iter().map(|job| job.order.read_bs.least_bytes()).collect();
    assert_eq!(bytes, [8192, 32768, 16384]);
    let groups: Vec<u32> = parsed.jobs.iter().map(|job| job.group).collect();
    assert_eq!(groups, [0, 0, 1]);
    assert_eq!(parsed.global, [("size".into(), "1m".into()), ("bs".into(), "16k".into())]);
    let options = &parsed.jobs[1].options;
    assert_eq!(options[1], ("bs".into(), "32k".into()));
    assert_eq!(options[2], ("rw".into(), "write".into()));
}

#[test]
fn comments_blanks_line_ends_and_variables_are_read_as_fio_reads_them() {
    let text = "\u{feff}; first\r\n  # second\r\n [a] ; third\r\n  size = ${SIZE} # fourth\r\n\
                bs=$pagesize;fifth\r\ndirect\r\nnumjobs=$ncpus\r\nfilename= a b \r\n";
    let parsed = read(text).expect("jobs");
    assert_eq!(parsed.jobs.len(), 3);
    let job = &parsed.jobs[0];
    assert_eq!((job.files.file_bytes, job.order.read_bs.least_bytes()), (Some(8192), 4096));
    assert!(job.io.direct);
    assert_eq!(paths(job), ["a b"]);
    assert_eq!(notes(text), ["line 5: ;fifth: is a comment, as in fio"]);
}

#[test]
fn sizes_of_files_and_of_transfers_are_those_of_fio() {
    let region = |lines: &str| {
        let job = job(lines);
        (job.files.offset_bytes, job.files.file_bytes, job.pace.io_bytes)
    };
    assert_eq!(region("filesize=64k\nsize=1m\nnrfiles=2").2, Some(131_072));
    assert_eq!(region("filesize=64k\nsize=8k\nio_size=1m").2, Some(1 << 20));
    assert_eq!(region("size=16k\nio_size=40k"), (0, Some(16384), Some(40960)));
    assert_eq!(region("io_limit=10000"), (0, Some(1 << 20), Some(12288)));
    assert_eq!(region("size=100%"), (0, None, None));
    assert_eq!(region("filesize=64k\nsize=25%\noffset=50%"), (32768, Some(16384), None));
    assert_eq!(region("filesize=64k\nsize=75%\noffset=50%"), (32768, Some(32768), None));
    let shares = |lines: &str| {
        let files = job(lines).files;
        (files.offset_bytes, files.offset_percent, files.file_bytes, files.size_percent)
    };
    assert_eq!(shares("size=25%\noffset=50%"), (0, 50, None, Some(25)));
    // Scripts that divide a file among jobs begin at 0%.
    assert_eq!(shares("size=10%\noffset=0%"), (0, 0, None, Some(10)));
    assert_eq!(shares("size=25%\nsize=8k"), (0, 0, Some(8192), None));
    assert_eq!(region("size=0"), (0, None, None));
    let clones = read("[a]\nsize=16k\nfilename=f\noffset=8k\noffset_increment=16k\nnumjobs=3");
    let clones = clones.expect("jobs").jobs;
    let offsets: Vec<u64> = clones.iter().map(|job| job.files.offset_bytes).collect();
    let clones = read("[a]\nsize=10%\nfilename=f\noffset_increment=20%\nnumjobs=3");
    let percents: Vec<u32> =
        clones.expect("jobs").jobs.iter().map(|job| job.files.offset_percent).collect();
    assert_eq!(percents, [0, 20, 40]);
    assert_eq!(offsets, [8192, 24576, 40960]);
}

#[test]
fn block_sizes_are_of_reads_and_of_writes() {
    let sizes = |lines: &str| {
        let job = job(lines);
        let told = |sizes: &BlockSizes| {
            let share = |share: &BlockShare| format!("{}/{}", share.bytes, share.percent);
            match sizes {
                BlockSizes::Split(shares) => shares.iter().map(share).collect::<Vec<_>>().join(":"),
                BlockSizes::Range { least_bytes, most_bytes } => {
                    format!("{least_bytes}-{most_bytes}")
                }
            }
        };
        format!("{},{}", told(&job.order.read_bs), told(&job.order.write_bs))
    };
    for (lines, told) in [
        ("bs=8k", "8192/100,8192/100"),
        ("blocksize=8k,16k", "8192/100,16384/100"),
        ("bs=8k,16k,4k", "8192/100,16384/100"),
        ("bs=8k,", "8192/100,4096/100"),
        ("bs=,8k", "4096/100,8192/100"),
        ("bs=1k\nbs=,8k", "1024/100,8192/100"),
        ("bssplit=4k/10:64k/50:32k/40", "4096/10:65536/50:32768/40,4096/10:65536/50:32768/40"),
        ("bssplit=4k/50:1k/:32k/", "4096/50:1024/25:32768/25,4096/50:1024/25:32768/25"),
        ("bssplit=2k/50:4k/50,4k/90:8k/10", "2048/50:4096/50,4096/90:8192/10"),
        ("bssplit=1k/:2k:4k/", "1024/33:2048/33:4096/34,1024/33:2048/33:4096/34"),
        ("bssplit=4k/0:8k/100", "8192/100,8192/100"),
        ("bsrange=4k-16k", "4096/25:8192/25:12288/25:16384/25,4096/25:8192/25:12288/25:16384/25"),
        ("bsrange=8k-4k,2k-2k", "4096/50:8192/50,2048/100"),
        ("bsrange=4k-64k,512-4k", "4096-65536,512-4096"),
        ("bsrange=4k-26k", "4096-24576,4096-24576"),
        ("bssplit=2k/100\nbs=4k", "2048/100,2048/100"),
        ("bsrange=2k-2k\nbs=4k", "2048/100,2048/100"),
    ] {
        assert_eq!(sizes(lines), told, "{lines}");
    }
}

#[test]
fn the_last_word_on_the_mix_counts() {
    let reads = |lines: &str| job(lines).order.rwmixread_percent;
    assert_eq!(reads("rw=randrw\nrwmixread=70"), 70);
    assert_eq!(reads("rw=randrw\nrwmixread=70\nrwmixwrite=70"), 30);
    assert_eq!(reads("rw=randrw\nrwmixwrite=70\nrwmixread=60"), 60);
}

#[test]
fn rates_are_of_reads_and_of_writes() {
    let both = job("rate=1m,500k").pace;
    assert_eq!(both.read_rate_bytes_per_s, Some(1 << 20));
    assert_eq!(both.write_rate_bytes_per_s, Some(500 << 10));
    let writes = job("rate=,500k").pace;
    assert_eq!(writes.read_rate_bytes_per_s, None);
    assert_eq!(writes.write_rate_bytes_per_s, Some(500 << 10));
    let operations = job("rate=0\nrate_iops=10k").pace;
    assert_eq!(operations.read_rate_bytes_per_s, None);
    assert_eq!((operations.read_rate_iops, operations.write_rate_iops), (Some(10240), Some(10240)));
}

#[test]
fn keys_of_safety_have_fios_meaning() {
    let safe = job("rw=write\nsync=dsync\nfsync=32\nfdatasync=0\nend_fsync=1\nfallocate=keep");
    let writes = &safe.writes;
    assert_eq!((writes.sync, writes.fsync, writes.fdatasync), (SyncEach::Dsync, Some(32), None));
    assert!(writes.end_fsync);
    assert_eq!(safe.files.fallocate, Fallocate::Keep);
    assert_eq!(job("sync=1").writes.sync, SyncEach::Sync);
    assert_eq!(job("sync=none").writes.sync, SyncEach::No);
    let verify = |lines: &str| job(lines).writes.verify;
    assert_eq!(verify("rw=write\nverify=crc32c"), Some(Verify { after_writes: true }));
    assert_eq!(
        verify("rw=write\nverify=crc32c\ndo_verify=0"),
        Some(Verify { after_writes: false })
    );
    assert_eq!(verify("rw=read\nverify=crc32c-intel"), Some(Verify { after_writes: false }));
    assert_eq!(verify("rw=write\nverify=0"), None);
    assert_eq!(job("zero_buffers").writes.data, Data::Zeros);
    assert_eq!(job("buffer_compress_percentage=40").writes.data, Data::Compressible(40));
}

#[test]
fn every_job_has_a_seed_of_its_own_and_the_same_one_each_time_unless_told_otherwise() {
    let seeds = |lines: &str, seed: u64| -> Vec<u64> {
        let text = format!("[a]\nsize=1m\nnumjobs=2\n{lines}\n[b]\nsize=1m\n");
        let given = Surroundings { seed, ..surroundings(&[]) };
        parse(&text, &given).expect("jobs").jobs.iter().map(|job| job.seed).collect()
    };
    let same = seeds("", 1);
    assert_eq!(same, seeds("randrepeat=1", 2));
    assert!(same[0] != same[1] && same[1] != same[2]);
    assert_ne!(seeds("randrepeat=0", 1)[0], seeds("randrepeat=0", 2)[0]);
    assert_eq!(seeds("randseed=5\nrandrepeat=0", 1)[0], seeds("randseed=5", 2)[0]);
    assert_ne!(seeds("randseed=5", 1)[0], same[0]);
}

#[test]
fn overrides_have_the_very_last_word() {
    let overrides = [("size".to_string(), Some("8k".to_string())), ("direct".to_string(), None)];
    let parsed = parse("[a]\nsize=1m\n[b]\n", &surroundings(&overrides)).expect("jobs");
    assert!(parsed.jobs.iter().all(|job| job.files.file_bytes == Some(8192) && job.io.direct));
    let overrides = [("sise".to_string(), Some("8k".to_string()))];
    let error = parse("[a]\n", &surroundings(&overrides)).expect_err("no such key");
    assert_eq!(error[0].to_string(), "sise=8k: no such key; did you mean size?");
    let overrides = [("filename".to_string(), Some("y".to_string()))];
    let parsed = parse("[a]\nfilename=x", &surroundings(&overrides)).expect("jobs");
    assert_eq!(paths(&parsed.jobs[0]), ["y"]);
}

#[test]
fn a_section_that_runs_alone_has_the_seed_of_the_first_as_in_fio() {
    let text = "[global]\nsize=1m\n[write]\nrw=write\n[read]\nstonewall\nrw=read\n";
    let alone = |section: &str| {
        let sections = [section.to_owned()];
        let parsed = parse(text, &Surroundings { sections: &sections, ..surroundings(&[]) });
        let parsed = parsed.expect("jobs");
        assert_eq!(parsed.sections, ["write", "read"]);
        let [job] = &parsed.jobs[..] else { panic!("one job") };
        (job.name.clone(), job.seed, job.group)
    };
    let all = read(text).expect("jobs").jobs;
    assert_eq!(alone("write"), ("write".into(), all[0].seed, 0));
    assert_eq!(alone("read"), ("read".into(), all[0].seed, 0));
    assert_ne!(all[0].seed, all[1].seed);
}

#[test]
fn engines_have_fios_names_and_what_they_become_is_said() {
    for (name, ioengine, note) in [
        ("psync", Ioengine::Psync, ""),
        ("io_uring", Ioengine::IoUring, ""),
        ("mmap", Ioengine::Mmap, ""),
        ("sync", Ioengine::Psync, "psync is used"),
        ("pvsync2", Ioengine::Psync, "psync is used"),
        ("libaio", Ioengine::IoUring, "io_uring is used"),
        ("posixaio", Ioengine::Threads, "threads is used"),
    ] {
        assert_eq!(job(&format!("ioengine={name}")).io.ioengine, ioengine, "{name}");
        let told: Vec<String> = match note {
            "" => vec![],
            note => vec![format!("line 2: ioengine={name}: {note}")],
        };
        assert_eq!(notes(&format!("[a]\nioengine={name}")), told, "{name}");
    }
}

#[test]
fn each_difference_from_fio_is_noted_once_with_its_line() {
    for (text, note) in [
        ("[global]\nthread\n[a]\n[b]", "line 2: thread: every job is a thread of one process"),
        (
            "[a]\nsize=8KiB",
            "line 2: 8KiB: is 8000 bytes, as in fio: with kb_base=1024, its default, \
          the units are reversed: k is 1024 and KiB 1000",
        ),
        ("[a]\nhipri\nioengine=io_uring", "line 2: hipri: has no effect: polling needs direct=1"),
        (
            "[a]\nioengine=io_uring\nsqthread_poll\nregisterfiles=0",
            "line 4: registerfiles=0: has no effect: sqthread_poll registers files anyway, as in \
             fio",
        ),
        ("[a]\nhipri=1", "line 2: hipri=1: has no effect with ioengine=psync"),
        (
            "[a]\n[b]\nnew_group",
            "line 3: new_group: changes nothing but fio's report: each job has its own row",
        ),
        (
            "[a]\nsize=10000",
            "line 2: size=10000: 10000 B is not a multiple of 4 KiB; 8 KiB is \
            used",
        ),
        ("[a]\nbssplit=4k/100\nbs=8k", "line 3: bs=8k: has no effect: bssplit sets the sizes"),
        ("[a]\nverify=md5", "line 2: verify=md5: blocks get a CRC32C instead"),
    ] {
        let told = notes(text);
        assert!(told.iter().any(|told| told == note), "{text}: {told:?}");
        assert_eq!(told.iter().filter(|told| *told == note).count(), 1);
    }
    assert_eq!(
        notes("[a]\nsize=1m\nkb_base=1000\nbs=4KiB"),
        ["line 2: size=1m: 1000000 B is not a multiple of 4 KiB; 976 KiB is used"]
    );
}

#[test]
fn the_lines_of_included_files_are_of_the_section_that_includes_them() {
    let jobs = read("[a]\nbs=4k\ninclude half.fio\nsize=1m\n[b]\n").expect("jobs").jobs;
    let bs = |at: usize| jobs[at].order.read_bs.only();
    assert_eq!((bs(0), bs(1), jobs[0].files.file_bytes), (Some(8192), Some(4096), Some(1 << 20)));
}

#[test]
fn called_as_fio_what_fio_takes_is_taken_and_a_file_outweighs_the_command_line() {
    let text = "[a]\niodepth=8\ntime_based\nrate=1m\nrate_iops=10\nio_submit_mode=offload\n\
                filename=${NOPE}x\nsize=1m\n";
    assert!(read(text).is_err());
    let overrides = ["size", "bs"].map(|key| (key.to_owned(), Some("64k".to_owned())));
    let as_fio = Surroundings { as_fio: true, ..surroundings(&overrides) };
    let jobs = parse(text, &as_fio).expect("fio takes it").jobs;
    assert_eq!((jobs[0].files.file_bytes, jobs[0].io.iodepth), (Some(1 << 20), 8));
    assert_eq!((jobs[0].order.read_bs.only(), jobs[0].pace.time_based), (Some(65_536), false));
    // 10 operations of 64 KiB are less than 1 MiB, so the limit in operations applies.
    assert_eq!((jobs[0].pace.read_rate_bytes_per_s, jobs[0].pace.read_rate_iops), (None, Some(10)));
    assert_eq!(jobs[0].files.paths[0].to_str(), Some("x"));
    let refused = parse("[a]\nzonemode=zbd\nfoo=1\n", &as_fio).expect_err("not taken");
    assert_eq!(refused.len(), 2, "{refused:?}");
}

#[test]
fn arrivals_are_even_unless_they_are_asked_to_be_random() {
    assert_eq!(job("rate_iops=100").pace.rate_process, Process::Linear);
    assert_eq!(job("rate_iops=100\nrate_process=poisson").pace.rate_process, Process::Poisson);
    assert!(problem("[a]\nsize=1m\nrate_process=uniform\n").contains("must be linear or poisson"));
}

#[test]
fn latencies_are_taken_unless_nobody_wants_any() {
    let takes = |lines: &str| (job(lines).latencies, job(lines).samples);
    assert_eq!(takes(""), (true, true));
    assert_eq!(takes("gtod_reduce=1"), (false, true));
    assert_eq!(takes("disable_lat=1"), (true, true));
    assert_eq!(takes("disable_lat=1\ndisable_clat=1"), (false, true));
    assert_eq!(takes("disable_bw_measurement"), (true, false));
}

#[test]
fn distributions_have_the_words_that_they_are_read_from() {
    for words in ["zipf:1.2", "pareto:0.2", "zoned:60/10:40/90"] {
        let job = job(&format!("rw=randread\nrandom_distribution={words}"));
        assert_eq!(job.order.random_distribution.words().as_deref(), Some(words));
    }
    assert_eq!(job("random_distribution=random").order.random_distribution.words(), None);
    let rest = job("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/").order;
    assert_eq!(rest.random_distribution.words().as_deref(), Some("zoned:50/5:30/15:20/80"));
}
