//! Tests of the result document of jobs: a row for each job and direction, with what its writes
//! survive.

use fixtures::samples::reports as sample;
use std::collections::HashSet;
use std::path::PathBuf;
use wrote_jobs::jobs::{GroupReport, Held, Permissions};
use wrote_jobs::peers::Peers;
use wrote_jobs::report::{Before, Repeated, document};
use wrote_jobs::spec::{BlockShare, BlockSizes, SyncEach, Writes};
use wrote_result::document::{Blocks, Direction, Document, Fallback, Flush, Row, Survives};

fn documented(groups: &[GroupReport], before: &Before) -> Document {
    let file = ("demo.fio", groups);
    document(&[file], before, &sample::about(), Peers::ALONE, None).unwrap()
}

fn row<'a>(document: &'a Document, name: &str) -> &'a Row {
    let mut rows = document.scenarios.iter().flat_map(|scenario| &scenario.rows);
    rows.find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}: {document:?}"))
}

/// Returns the sample's document with `change` applied to its first job, a sequential direct write.
fn write_with(change: impl FnOnce(&mut wrote_jobs::jobs::JobReport)) -> Document {
    let mut groups = sample::groups();
    change(&mut groups[0].jobs[0]);
    documented(&groups, &sample::before())
}

fn survives(document: &Document) -> Survives {
    row(document, "seq-write").survives.expect("a write survives something")
}

#[test]
fn there_is_a_row_for_each_job_and_direction_and_clones_are_one() {
    let document = documented(&sample::groups(), &sample::before());
    let rows = &document.scenarios[0].rows;
    let told: Vec<_> = rows.iter().map(|row| (&*row.name, &*row.workload)).collect();
    assert_eq!(
        told,
        [
            ("seq-write", "group 0"),
            ("reader", "group 1"),
            ("mix/read", "group 1"),
            ("mix/write", "group 1")
        ]
    );
    assert_eq!(document.scenarios[0].name, "demo.fio");
    let reader = row(&document, "reader");
    assert_eq!((reader.settings.asked.numjobs, reader.settings.asked.size_bytes), (2, 128 << 20));
    assert_eq!((reader.bytes_per_run, reader.runs[0].iops), (128 << 20, 32768.0));
    assert_eq!(reader.latency_ns.unwrap().count, 32768);
    assert_eq!(reader.way, "random read, direct io_uring x 64");
    assert!(document.advice.is_empty());
}

#[test]
fn a_row_of_reads_survives_nothing_and_says_so_by_leaving_it_out() {
    let document = documented(&sample::groups(), &sample::before());
    for row in &document.scenarios[0].rows {
        assert_eq!(row.survives.is_none(), row.direction == Direction::Read, "{row:?}");
    }
    let value = serde_json::to_value(&document).expect("it can be JSON");
    let reader = &value["scenarios"][0]["rows"][1];
    assert_eq!((reader.get("survives"), &reader["direction"]), (None, &"read".into()));
}

#[test]
fn the_cost_of_a_mix_is_divided_between_its_rows() {
    let mut groups = sample::groups();
    groups[1].jobs[2].write.operations /= 3;
    let document = documented(&groups, &sample::before());
    let cpu = |name| row(&document, name).runs[0].cpu_user_s;
    assert!((cpu("mix/read") / cpu("mix/write") - 3.0).abs() < 0.01);
    assert!((cpu("mix/read") + cpu("mix/write") - 0.125).abs() < 1e-9);
}

#[test]
fn only_a_flush_that_covers_every_write_survives_a_power_loss() {
    // W1
    assert_eq!(survives(&write_with(|_| ())), Survives::ProcessCrash);
    let flushed =
        |change: fn(&mut Writes)| survives(&write_with(|job| change(&mut job.spec.writes)));
    assert_eq!(flushed(|writes| writes.end_fsync = true), Survives::PowerLoss);
    assert_eq!(flushed(|writes| writes.fsync = Some(1)), Survives::PowerLoss);
    assert_eq!(flushed(|writes| writes.fdatasync = Some(1)), Survives::PowerLoss);
    assert_eq!(flushed(|writes| writes.sync = SyncEach::Dsync), Survives::PowerLoss);
    // The last writes are not flushed.
    assert_eq!(flushed(|writes| writes.fsync = Some(32)), Survives::ProcessCrash);
}

#[test]
fn a_direct_write_is_in_the_device_only_over_blocks_that_were_written_before() {
    // M3
    let file = PathBuf::from("/mnt/data/seq-write.0");
    let settled = Before::new(file.clone(), sample::target(), HashSet::from([file.clone()]), true);
    let told = documented(&sample::groups(), &settled);
    assert_eq!(survives(&told), Survives::OsCrash);
    assert_eq!(row(&told, "seq-write").settings.asked.blocks, Blocks::Written);
    // Blocks are written and flushed before they are read.
    assert_eq!(row(&told, "mix/write").survives, Some(Survives::OsCrash));
    assert_eq!(row(&told, "mix/write").settings.asked.blocks, Blocks::Written);
    let mut groups = sample::groups();
    groups[0].jobs[0].direct = false;
    assert_eq!(survives(&documented(&groups, &settled)), Survives::ProcessCrash);
    let mut target = sample::target();
    target.filesystem = "btrfs".into();
    let copies = Before::new(file.clone(), target, HashSet::from([file]), true);
    assert_eq!(survives(&documented(&sample::groups(), &copies)), Survives::ProcessCrash);
}

#[test]
fn a_row_survives_less_where_direct_io_fell_back_or_blocks_are_copied() {
    // M3, M6: one of the runs fell back.
    let file = PathBuf::from("/mnt/data/seq-write.0");
    let row_of = |filesystem: &str, direct: [bool; 2]| {
        let mut target = sample::target();
        target.filesystem = filesystem.into();
        let before = Before::new(file.clone(), target, HashSet::from([file.clone()]), true);
        let mut runs = Repeated::default();
        for direct in direct {
            let mut group = sample::groups().remove(0);
            group.jobs[0].direct = direct;
            runs.add(Repeated::of(&group, &before, |_, settings| Row {
                settings,
                ..Row::default()
            }));
        }
        runs.rows().remove(0)
    };
    for (filesystem, direct, survives) in [
        ("ext4", [true, true], Survives::OsCrash),
        ("ext4", [false, true], Survives::ProcessCrash),
        ("ext4", [true, false], Survives::ProcessCrash),
        ("btrfs", [true, true], Survives::ProcessCrash),
    ] {
        let row = row_of(filesystem, direct);
        assert_eq!(row.survives, Some(survives), "{filesystem} {direct:?}");
        assert_eq!(row.settings.effective.direct, direct == [true, true]);
        assert_eq!(row.runs.len(), 2);
    }
}

#[test]
fn blocks_that_could_not_be_allocated_are_new_ones_in_effect() {
    // M6
    let told = write_with(|job| {
        job.fallbacks = vec![Fallback {
            wanted: "allocated blocks".into(),
            got: "new blocks".into(),
            because: "fallocate: Operation not supported (os error 95)".into(),
        }];
    });
    let settings = &row(&told, "seq-write").settings;
    let blocks = (settings.asked.blocks, settings.effective.blocks);
    assert_eq!(blocks, (Blocks::Allocated, Blocks::New));
}

#[test]
fn cached_bytes_count_unless_they_may_be_from_before() {
    let held = |before_bytes, after_bytes| Held {
        file: PathBuf::from("/mnt/data/seq-write.0"),
        offset_bytes: 0,
        before_bytes,
        after_bytes,
    };
    let counted = |held: Vec<Held>, direct| {
        let mut groups = sample::groups();
        (groups[0].held, groups[0].jobs[0].direct) = (held, direct);
        row(&documented(&groups, &sample::before()), "seq-write").runs[0].page_cache_bytes
    };
    assert_eq!(counted(vec![held(0, 5000)], true), Some(5000));
    // Direct writes of 1 GiB have dropped as many cached bytes.
    assert_eq!(counted(vec![held(5000, 5000)], true), Some(5000));
    assert_eq!(counted(vec![held(2 << 30, 1 << 30)], true), Some(0));
    assert_eq!(counted(vec![held(0, 5000)], false), None, "it went through the cache");
    assert_eq!(counted(Vec::new(), true), None, "nobody looked");
}

#[test]
fn reads_of_what_may_never_have_been_written_are_of_unknown_blocks() {
    // M9
    let told = |unwritten_bytes| {
        let mut groups = sample::groups();
        groups[1].jobs[0].unwritten_bytes = unwritten_bytes;
        let told = documented(&groups, &sample::before());
        let reader = row(&told, "reader");
        (reader.settings.asked.blocks, reader.runs[0].unwritten_bytes)
    };
    // The job has two clones.
    assert_eq!(told(Some(0)), (Blocks::Written, Some(0)));
    assert_eq!(told(Some(4096)), (Blocks::Unknown, Some(4096)));
    assert_eq!(told(None), (Blocks::Unknown, None));
}

#[test]
fn blocks_are_settled_where_the_file_was_written_to_its_end_and_has_no_hole() {
    let folder = fixtures::folder();
    let path = folder.path().join("job.0");
    let blocks_with = |overwrite| {
        let mut groups = sample::groups();
        groups[0].jobs[0].spec.files.paths = vec![path.clone()];
        groups[0].jobs[0].spec.files.file_bytes = Some(1 << 20);
        let permissions = Permissions { overwrite, ..Permissions::default() };
        let specs = [groups[0].jobs[0].spec.clone()];
        let before = Before::examine(&specs, permissions).expect("a folder is there");
        row(&documented(&groups, &before), "seq-write").settings.asked.blocks
    };
    let blocks = || blocks_with(true);
    assert_eq!(blocks(), Blocks::Allocated, "no file");
    std::fs::write(&path, vec![7; 1 << 20]).expect("a file");
    assert_eq!(blocks(), Blocks::Written);
    assert_eq!(blocks_with(false), Blocks::Allocated, "it will not be written over");
    std::fs::write(&path, vec![7; 1 << 19]).expect("a file");
    assert_eq!(blocks(), Blocks::Allocated, "too short");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(1 << 20).expect("a hole");
    assert_eq!(blocks(), Blocks::Allocated, "a hole");
}

#[test]
fn each_fallback_and_the_settings_of_jobs_are_told() {
    // M6
    let step = Fallback { wanted: "a".into(), got: "b".into(), because: "c".into() };
    let document = write_with(|job| {
        job.fallbacks.push(step.clone());
        job.direct = false;
        job.effective.iodepth_reached = 3;
        job.spec.writes.fdatasync = Some(8);
        let share = |bytes, percent| BlockShare { bytes, percent };
        job.spec.order.write_bs = BlockSizes::Split(vec![share(4096, 25), share(65536, 75)]);
    });
    let settings = &row(&document, "seq-write").settings;
    assert_eq!(settings.fallbacks, [step]);
    assert_eq!((settings.asked.iodepth, settings.effective.iodepth), (64, 3));
    assert!(settings.asked.direct && !settings.effective.direct);
    assert_eq!(settings.asked.sync, Flush::FdatasyncEvery(8));
    assert_eq!(settings.asked.bs_bytes, 65536);
    assert_eq!(settings.asked.bssplit.as_ref().map(Vec::len), Some(2));
    let ids: Vec<_> = document.findings.iter().map(|finding| finding.id.as_str()).collect();
    assert!(ids.contains(&"fallback") && ids.contains(&"depth-not-reached"), "{ids:?}");
}

#[test]
fn bytes_that_the_device_never_saw_are_called_ram_of_all_jobs_at_once() {
    // M7
    let ids = |groups: &[GroupReport]| -> Vec<String> {
        let findings = documented(groups, &sample::before()).findings;
        findings.iter().map(|finding| format!("{}: {}", finding.id, finding.text)).collect()
    };
    let ram = |told: &[String]| told.iter().filter(|told| told.starts_with("ram-not")).count();
    let told = ids(&sample::groups());
    assert_eq!(ram(&told), 0, "{told:?}");
    assert!(!told.iter().any(|told| told.starts_with("busy-neighbour")), "{told:?}");
    let mut groups = sample::groups();
    groups[1].device.as_mut().expect("counters").read_bytes = 1 << 20;
    let told = ids(&groups);
    assert_eq!(ram(&told), 0, "{told:?}");
    assert!(told[0].starts_with("direct-not-honoured: "), "{told:?}");
    assert!(told[0].ends_with(". Rows: reader, mix/read"), "{told:?}");
    groups[1].jobs.iter_mut().for_each(|job| job.direct = false);
    let told = ids(&groups);
    assert_eq!(ram(&told), 1, "{told:?}");
    assert!(told[0].contains("only 1.05 of 151 MB came from the device"), "{told:?}");
    assert!(told[0].ends_with(". Rows: reader, mix/read"), "{told:?}");
}

#[test]
fn two_jobs_of_one_name_have_names_of_their_own() {
    let mut groups = sample::groups();
    groups[1].jobs[2].spec.name = "reader".into();
    groups[1].jobs[2].spec.order.rw.write = false;
    let document = documented(&groups, &sample::before());
    let names: Vec<_> = document.scenarios[0].rows.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["seq-write", "reader", "reader#2"]);
}

#[test]
fn the_blocks_of_a_file_that_an_earlier_group_used_are_not_known() {
    let mut groups = sample::groups();
    let mut again = groups[0].clone();
    again.jobs[0].spec.group = 2;
    groups.push(again);
    let document = documented(&groups, &sample::before());
    let blocks = |name| row(&document, name).settings.asked.blocks;
    assert_eq!((blocks("seq-write"), blocks("seq-write#2")), (Blocks::Allocated, Blocks::Unknown));
}
