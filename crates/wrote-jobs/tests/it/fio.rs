//! Tests of the parser of job files, which is compared with an installed fio.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wrote_jobs::fio::{ParseError, Parsed, Surroundings, parse};
use wrote_jobs::jobs::{Permissions, run};
use wrote_jobs::peers::Peers;
use wrote_result::Stop;

/// A time limit that only a hang reaches.
const HANG: Duration = Duration::from_secs(120);

fn read(text: &str) -> Result<Parsed, ParseError> {
    read_sections(text, &[])
}

fn read_sections(text: &str, sections: &[String]) -> Result<Parsed, ParseError> {
    let surroundings = Surroundings {
        environment: &|_| None,
        cpus: 1,
        page_bytes: 4096,
        memory_mib: 1024,
        seed: 0,
        overrides: &[],
        sections,
        include: &|_| Err("is not here".into()),
        as_fio: false,
    };
    parse(text, &surroundings).map_err(|mut errors| errors.remove(0))
}

/// Returns fio's standard output; `None` if fio fails. Kills fio if it hangs.
fn fio(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = folder.join("output");
    let mut child = Command::new("fio")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output).expect("a file for its output"))
        .stderr(Stdio::null())
        .spawn()
        .expect("fio starts");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("fio ends") {
            break status;
        }
        if start.elapsed() > HANG {
            child.kill().expect("fio ends");
            child.wait().expect("fio ends");
            panic!("fio {arguments:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    status.success().then(|| std::fs::read_to_string(&output).expect("text"))
}

/// Returns fio's version. If fio is not installed, skips `test` and returns `None`.
fn version(test: &str) -> Option<String> {
    match Command::new("fio").arg("--version").output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        Err(_) => {
            fixtures::skip(test, "fio is not installed");
            None
        }
    }
}

fn there_is_fio(test: &str) -> bool {
    version(test).is_some()
}

/// Returns whether the installed fio has the version whose keys are compared; skips `test` if not.
/// Other versions have more or fewer keys.
fn there_is_the_fio_that_was_read(test: &str) -> bool {
    let version = version(test);
    let same = version.as_deref() == Some("fio-3.33");
    if let Some(version) = version.filter(|_| !same) {
        fixtures::skip(test, &format!("the keys are those of fio-3.33, and this is {version}"));
    }
    same
}

/// Returns the numbers that fio parses from the values of these lines of a job, in order.
fn values_in_fio(folder: &Path, lines: &str) -> Vec<u64> {
    std::fs::write(folder.join("job.fio"), format!("[a]\n{lines}\n")).expect("a job file");
    let told = fio(folder, &["--debug=parse", "--parse-only", "job.fio"]).expect("fio's word");
    let read = told.lines().filter_map(|line| line.split_once("ret=0, out="));
    read.filter_map(|(_, number)| number.trim().parse().ok()).collect()
}

#[test]
fn sizes_are_as_many_bytes_as_in_fio() {
    if !there_is_fio("sizes_are_as_many_bytes_as_in_fio") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let spellings = [
        "4096", "4096b", "4096B", "4k", "4K", "4kb", "4kB", "4KB", "4ki", "4Ki", "4kib", "4KiB",
        "4KIB", "1m", "1M", "3MB", "1mi", "3MiB", "2g", "2GB", "2GiB", "1t", "1TiB", "1p", "1PiB",
        "0x1000", "0X10000", "010000",
    ];
    let sizes: Vec<String> = spellings.iter().map(|size| format!("size={size}")).collect();
    let theirs = values_in_fio(folder.path(), &sizes.join("\n"));
    assert_eq!(theirs.len(), spellings.len());
    for (size, theirs) in sizes.iter().zip(theirs) {
        let parsed = read(&format!("[a]\nbs=1\n{size}")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.jobs[0].files.file_bytes, Some(theirs), "{size}");
    }
    for spelling in ["4k", "4kB", "4KiB", "3MiB"] {
        let size = format!("kb_base=1000\nsize={spelling}");
        let theirs = values_in_fio(folder.path(), &size).pop();
        let parsed = read(&format!("[a]\nbs=1\n{size}")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.jobs[0].files.file_bytes, theirs, "{size}");
    }
}

#[test]
fn times_are_as_long_as_in_fio() {
    if !there_is_fio("times_are_as_long_as_in_fio") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let spellings =
        ["10", "10s", "10S", "10 s", "500ms", "500msec", "7us", "7usec", "2m", "2M", "3h", "1d"];
    let times: Vec<String> = spellings.iter().map(|time| format!("runtime={time}")).collect();
    let theirs = values_in_fio(folder.path(), &times.join("\n"));
    assert_eq!(theirs.len(), spellings.len());
    for (time, theirs) in times.iter().zip(theirs) {
        let parsed = read(&format!("[a]\n{time}")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.jobs[0].pace.runtime, Some(Duration::from_micros(theirs)), "{time}");
    }
}

/// Returns the words before the colons of the lines that fio prints.
fn names_in_fio(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let told = fio(folder, arguments).unwrap_or_default();
    let names = told.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_string()).collect()
}

#[test]
fn the_list_of_fios_keys_has_all_that_fio_lists() {
    if !there_is_the_fio_that_was_read("the_list_of_fios_keys_has_all_that_fio_lists") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let listed: Vec<&str> =
        include_str!("../../src/fio/tests/fio-3.33.txt").split_whitespace().collect();
    let mut keys = names_in_fio(folder.path(), &["--cmdhelp=all"]);
    assert!(keys.len() > 200, "{keys:?}");
    let engines = fio(folder.path(), &["--enghelp"]).expect("fio's engines");
    for engine in engines.lines().skip(1).map(str::trim) {
        keys.extend(names_in_fio(folder.path(), &[&format!("--enghelp={engine}")]));
    }
    let unlisted: Vec<&String> =
        keys.iter().filter(|key| !listed.contains(&key.as_str())).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}

/// Runs a job with fio, and returns the names and sizes of its files, in order.
fn files_of_fio(folder: &Path, text: &str) -> Vec<(String, u64)> {
    let made = folder.join("made");
    std::fs::create_dir_all(made.join("d1")).expect("a folder");
    std::fs::create_dir_all(made.join("d2")).expect("a folder");
    std::fs::write(folder.join("job.fio"), text).expect("a job file");
    fio(&made, &["../job.fio"]).unwrap_or_else(|| panic!("fio takes {text}"));
    let mut files = Vec::new();
    for part in ["", "d1/", "d2/"] {
        for entry in std::fs::read_dir(made.join(part)).expect("a folder") {
            let entry = entry.expect("a file");
            let size_bytes = entry.metadata().expect("its size").len();
            if entry.file_type().expect("its kind").is_file() && entry.file_name() != "output" {
                let name = entry.file_name().into_string().expect("text");
                files.push((format!("{part}{name}"), size_bytes));
            }
        }
    }
    files.sort();
    std::fs::remove_dir_all(&made).expect("the folder goes");
    files
}

#[test]
fn files_have_the_names_and_sizes_that_fio_gives_them() {
    if !there_is_fio("files_have_the_names_and_sizes_that_fio_gives_them") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for lines in [
        "size=8k",
        "size=8k\nnumjobs=3\ndirectory=d1:d2",
        "size=16k\nnumjobs=2\ndirectory=d1/:d2\nfilename=x:y\\:z",
        "size=16k\nnrfiles=2\nfilename=x",
        "size=16k\nnrfiles=2\nnumjobs=2",
        "size=16k\nnrfiles=2\nfilename_format=f-$jobname-$filenum.$jobnum",
        "size=16k\nfilename=x\nfilename=y",
        "size=16k\nname=other",
        "size=16k\noffset=8k\noffset_increment=16k\nnumjobs=2\nfilename=f",
        "filesize=64k\nsize=16k\noffset=8k",
        "filesize=64k\nsize=1m\noffset=8k",
        "size=16k ; a comment\nio_size=40k",
        "size=16k\ndirectory=d1\nfilename=x#y",
    ] {
        let text = format!("[a job]\nrw=write\n{lines}\n");
        let parsed = read(&text).unwrap_or_else(|error| panic!("{text}{error}"));
        let mut ours = std::collections::BTreeMap::<String, u64>::new();
        for job in &parsed.jobs {
            for path in &job.files.paths {
                let end = job.files.offset_bytes + job.files.file_bytes.expect("a size");
                let name = path.to_str().expect("text").to_string();
                let longest = ours.entry(name).or_default();
                *longest = end.max(*longest);
            }
        }
        let ours: Vec<(String, u64)> = ours.into_iter().collect();
        assert_eq!(ours, files_of_fio(folder.path(), &text), "{text}");
    }
}

#[test]
fn fio_takes_the_example_of_every_key_that_is_taken() {
    if !there_is_the_fio_that_was_read("fio_takes_the_example_of_every_key_that_is_taken") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = String::from("[before]\nsize=1m\n");
    // fio has these keys since version 3.38.
    let newer = |example: &&str| {
        !["uncached", "dontcache", "atomic"].iter().any(|key| example.starts_with(key))
    };
    let examples = include_str!("../../src/fio/tests/examples.txt").lines().filter(newer);
    for (number, example) in examples.enumerate() {
        let libaio = example.starts_with("userspace_reap");
        let engine = if libaio { "libaio" } else { "io_uring" };
        text += &format!("[job{number}]\nioengine={engine}\nsize=1m\n{example}\n");
    }
    std::fs::write(folder.path().join("job.fio"), text).expect("a job file");
    assert!(fio(folder.path(), &["--parse-only", "job.fio"]).is_some());
}

#[test]
fn jobs_are_in_the_groups_that_fio_puts_them_in() {
    if !there_is_fio("jobs_are_in_the_groups_that_fio_puts_them_in") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let lines = "[global]\nioengine=null\nsize=4k\n[a]\nstonewall\nnumjobs=2\n[b]\n[c]\n\
                 wait_for_previous=1\n[d]\nstonewall=0\n[global]\nstonewall\n[e]\n[f]\n";
    std::fs::write(folder.path().join("job.fio"), lines).expect("a job file");
    let told = fio(folder.path(), &["--output-format=json", "job.fio"]).expect("fio's result");
    let theirs: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let theirs = theirs["jobs"].as_array().expect("jobs").iter().map(|job| {
        let name = job["jobname"].as_str().expect("a name").to_string();
        (name, job["groupid"].as_u64().expect("a number"))
    });
    let ours = read(&lines.replace("null", "psync")).expect("jobs").jobs;
    let ours: Vec<_> = ours.into_iter().map(|job| (job.name, u64::from(job.group))).collect();
    assert_eq!(ours, theirs.collect::<Vec<_>>());
}

#[test]
fn splits_and_files_transfer_as_many_bytes_as_in_fio() {
    if !there_is_fio("splits_and_files_transfer_as_many_bytes_as_in_fio") {
        return;
    }
    for lines in [
        "size=10000",
        "size=20k\nnrfiles=3",
        "size=1m\nio_size=10000",
        "size=16k\nio_size=50%",
        "size=64k\nbs=8k,4k",
        "filesize=64k\nsize=16k\noffset=8k",
        "filesize=64k\nsize=1m\noffset=8k",
        "filesize=64k\noffset=8k",
        "size=64k\nbs=4k\nbssplit=2k/100",
        "size=16k\nnrfiles=2\nfilename=x",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!("[a]\nrw=write\nfallocate=none\n{lines}\n");
        std::fs::write(folder.path().join("job.fio"), &text).expect("a job file");
        let told = fio(folder.path(), &["--output-format=json", "job.fio"]).expect("fio's result");
        let theirs: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let job = read(&text).unwrap_or_else(|error| panic!("{text}{error}")).jobs.remove(0);
        let file_bytes = job.files.file_bytes.expect("a size");
        let ours = job.pace.io_bytes.unwrap_or(file_bytes * job.files.paths.len() as u64);
        assert_eq!(theirs["jobs"][0]["write"]["io_bytes"].as_u64(), Some(ours), "{text}");
    }
}

/// Returns the operations and bytes of reads and of writes that fio counts for a job.
fn counts_in_fio(folder: &Path, text: &str) -> [(u64, u64); 2] {
    std::fs::write(folder.join("job.fio"), text).expect("a job file");
    let told = fio(folder, &["--output-format=json", "job.fio"]).expect("fio's result");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    ["read", "write"].map(|direction| {
        let of = |key: &str| told["jobs"][0][direction][key].as_u64().expect("a number");
        (of("total_ios"), of("io_bytes"))
    })
}

/// Returns the operations and bytes of reads and of writes that this crate counts for the job.
fn counts(folder: &Path, text: &str) -> [(u64, u64); 2] {
    let own = format!("ioengine=io_uring\ndirectory={}", folder.display());
    let jobs = read(&text.replace("ioengine=null", &own))
        .unwrap_or_else(|error| panic!("{text}{error}"))
        .jobs;
    // An earlier job may have left its file behind.
    let permissions =
        Permissions { overwrite: true, read_unwritten: true, ..Permissions::default() };
    let done = run(&jobs, permissions, &Stop::new(), &mut (), Peers::ALONE);
    let job = done.unwrap_or_else(|error| panic!("{text}{error}")).remove(0).jobs.remove(0);
    [job.read, job.write].map(|direction| (direction.operations, direction.bytes))
}

#[test]
fn jobs_do_as_many_operations_as_in_fio() {
    if !there_is_the_fio_that_was_read("jobs_do_as_many_operations_as_in_fio") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for lines in [
        "rw=read",
        "rw=randwrite\niodepth=16",
        "number_ios=10",
        "number_ios=10\nloops=3",
        "number_ios=10\nrw=randwrite\niodepth=16",
        "number_ios=300\nloops=2",
        "number_ios=10\nio_size=4m",
        "number_ios=0",
        "rw=randread\nrandom_distribution=zipf:1.2",
        "rw=randread\nrandom_distribution=zoned:60/10:40/90",
        "number_ios=9\nthinktime=1000\nthinktime_blocks=4\nrw=randread\niodepth=4",
    ] {
        let text = format!("[a]\nioengine=null\nsize=1m\n{lines}\n");
        assert_eq!(counts(folder.path(), &text), counts_in_fio(folder.path(), &text), "{lines}");
    }
    // The sizes are random, but the number of operations is not.
    for lines in ["rw=randrw\nbs=4k,8k", "rw=write\nbssplit=4k/50:8k/50\nloops=2"] {
        let text = format!("[a]\nioengine=null\nsize=1m\nnumber_ios=10\n{lines}\n");
        let operations = |counts: [(u64, u64); 2]| counts[0].0 + counts[1].0;
        let theirs = operations(counts_in_fio(folder.path(), &text));
        assert_eq!(operations(counts(folder.path(), &text)), theirs, "{lines}");
    }
}

/// Returns the content of the only file that the job writes with this crate.
fn written(folder: &Path, text: &str) -> Vec<u8> {
    let mut jobs = read(text).unwrap_or_else(|error| panic!("{text}{error}")).jobs;
    let path = folder.join("ours");
    jobs[0].files.paths = vec![path.clone()];
    let done = run(&jobs, Permissions::default(), &Stop::new(), &mut (), Peers::ALONE);
    done.unwrap_or_else(|error| panic!("{text}{error}"));
    let bytes = std::fs::read(&path).expect("what was written");
    std::fs::remove_file(path).expect("the file goes");
    bytes
}

fn written_by_fio(folder: &Path, text: &str) -> Vec<u8> {
    std::fs::write(folder.join("job.fio"), text).expect("a job file");
    fio(folder, &["job.fio"]).unwrap_or_else(|| panic!("fio takes {text}"));
    let path = folder.join("a.0.0");
    let bytes = std::fs::read(&path).expect("what was written");
    std::fs::remove_file(path).expect("the file goes");
    bytes
}

#[test]
fn a_buffer_pattern_is_written_as_by_fio_and_verify_finds_its_own_header_in_it() {
    if !there_is_fio("a_buffer_pattern_is_written_as_by_fio") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for pattern in ["0xdeadface", "0xabc", "\"abcd\""] {
        let text = format!("[a]\nrw=write\nsize=12k\nbs=3k\nbuffer_pattern={pattern}\n");
        let ours = written(folder.path(), &text);
        assert_eq!(ours, written_by_fio(folder.path(), &text), "{pattern}");
    }
    // A block that was altered would end the run.
    let pattern = "[a]\nrw=randwrite\nsize=64k\nbuffer_pattern=\"abc\"\nverify=crc32c\n";
    let block = &written(folder.path(), pattern)[..4096];
    assert!(block.starts_with(b"wroteblk") && block[42..].starts_with(b"abcabc"));
}

#[test]
fn a_job_that_only_reads_verifies_what_a_job_of_any_sizes_and_offsets_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    for (order, lines) in [
        ("", "bssplit=4k/50:8k/50"),
        ("rand", "bssplit=4k/50:8k/50"),
        ("rand", "bssplit=4k/50:8k/50\nnorandommap"),
        ("rand", "bsrange=4k-16k"),
        ("rand", "bs=4k\nnorandommap"),
        ("rand", "bs=4k\nrandom_distribution=zipf:1.2"),
        ("rand", "bs=4k\nnumber_ios=100"),
        ("rand", "bs=4k\nio_size=400k"),
    ] {
        let text = format!(
            "[global]\nsize=1m\nfilename={}\nverify=crc32c\ndo_verify=0\n{lines}\n\
             [write]\nrw={order}write\n[read]\nstonewall\nrw={order}read\n\
             [other]\nstonewall\nrw=randread\nbs=8k\n",
            path.display()
        );
        let run_sections = |sections: &[&str]| {
            let sections: Vec<String> = sections.iter().map(|name| (*name).into()).collect();
            let jobs = read_sections(&text, &sections).expect("jobs").jobs;
            let verified = |report: &wrote_jobs::jobs::JobReport| report.verified_bytes;
            let groups = run(&jobs, Permissions::default(), &Stop::new(), &mut (), Peers::ALONE)?;
            Ok::<Vec<u64>, wrote_result::Error>(
                groups.iter().flat_map(|group| &group.jobs).map(verified).collect(),
            )
        };
        let verified = run_sections(&[]).expect(&text);
        assert!(verified[1..].iter().all(|bytes| *bytes > 0), "{lines}: {verified:?}");
        std::fs::remove_file(&path).expect("the file goes");
        for section in ["write", "read", "other"] {
            run_sections(&[section]).expect(&text);
        }
        // A reader that runs alone has the same order as the writer, and so finds a damaged block.
        let mut bytes = std::fs::read(&path).expect("the file");
        let block = bytes.windows(8).position(|bytes| bytes == b"wroteblk").expect("a block");
        bytes[block + 100] ^= 1;
        std::fs::write(&path, bytes).expect("the file");
        let error = run_sections(&["read"]).expect_err(lines).to_string();
        assert!(error.contains(&format!("verify at byte {block}: CRC32C")), "{error}");
        std::fs::remove_file(&path).expect("the file goes");
    }
}

#[test]
fn a_distribution_uses_about_as_many_blocks_as_in_fio_and_in_the_same_zones() {
    if !there_is_fio("a_distribution_uses_about_as_many_blocks_as_in_fio") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The number of blocks used in the first tenth of the file, and in total. With a uniform
    // distribution, they would be 65 and 647.
    for (lines, is_like) in
        [("zipf:1.2", 0.6..1.6), ("pareto:0.1", 0.6..1.6), ("zoned:90/10:10/90", 0.8..1.2)]
    {
        let text = format!(
            "[a]\nrw=randwrite\nbs=512\nsize=512k\nfallocate=truncate\nbuffer_pattern=0x61\n\
             random_distribution={lines}\n"
        );
        let used = |bytes: Vec<u8>| {
            let blocks: Vec<bool> = bytes.chunks(512).map(|block| block[0] != 0).collect();
            let count = |blocks: &[bool]| blocks.iter().filter(|is| **is).count();
            (count(&blocks[..102]), count(&blocks))
        };
        let ours = used(written(folder.path(), &text));
        let theirs = used(written_by_fio(folder.path(), &text));
        let ratio = ours.1 as f64 / theirs.1 as f64;
        assert!(is_like.contains(&ratio), "{lines}: {ours:?} {theirs:?}");
        if lines.starts_with("zoned") {
            let ratio = ours.0 as f64 / theirs.0 as f64;
            assert!(ours.0 > 90 && is_like.contains(&ratio), "{ours:?} {theirs:?}");
        }
    }
}
