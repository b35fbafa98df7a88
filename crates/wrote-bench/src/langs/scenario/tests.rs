//! Tests of the plan: its rows, space, bytes and time, without running a program.

use super::*;
use crate::langs::catalogue::catalogue;
use crate::langs::toolchain::Tools;
use crate::langs::workload::Kind;
use wrote_jobs::sample::place;

const GIB: u64 = 1 << 30;

/// Returns the plan of a request for the first `programs` languages without variants.
fn planned(request: &Request, programs: usize, target: &Target) -> Result<Plan<'static>, Error> {
    Ok(made(request, programs, target)?.plan(target))
}

fn made(request: &Request, programs: usize, target: &Target) -> Result<Programs, Error> {
    let entries = catalogue(&[]).unwrap().entries.into_iter();
    let tools = Tools { version: String::new(), build: Vec::new(), run: Vec::new() };
    let candidates = entries.filter(|entry| entry.manifest.variants.is_empty()).map(|entry| {
        let variant = entry.manifest.programs(&entry.id).remove(0);
        Candidate { entry, variant, tools: tools.clone() }
    });
    let comparison = Comparison {
        request: request.clone(),
        chosen: candidates.take(programs).collect(),
        languages: Rc::default(),
    };
    Programs::new(&comparison, target)
}

fn request(workloads: &[Kind]) -> Request {
    Request { workloads: workloads.to_vec(), ..Request::new("/data".into(), "/cache".into()) }
}

#[test]
fn an_amount_is_a_round_number_near_what_is_wanted() {
    for (wanted, amount) in
        [(0.0, 1), (1.7, 1), (1.9, 2), (4.6, 5), (3.9, 2), (99e6, 100_000_000), (199.0, 200)]
    {
        assert_eq!(step(wanted), amount, "{wanted}");
    }
}

#[test]
fn the_rows_are_the_drives_and_each_programs_in_each_workload() {
    let disk = place(1 << 40, 1 << 39);
    let mut memory = disk.clone();
    memory.in_memory = true;
    let rows = planned(&request(&[Kind::Bytes, Kind::Save]), 1, &disk).unwrap().rows;
    assert_eq!(rows.len(), 2 + 2 + 8, "{rows:?}");
    let names: Vec<&str> = rows.iter().map(|spec| spec.row.name.as_str()).collect();
    assert_eq!(names[..2], ["langs/bytes-write/drive", "langs/bytes-write/c"]);
    // M3: only synced bytes survive more than a crash of their process. Reads survive nothing.
    let survives = |name: &str| {
        let spec = rows.iter().find(|spec| spec.row.name == format!("langs/{name}"));
        spec.expect("it is a row").row.survives
    };
    assert_eq!(survives("bytes-write/drive"), Some(Survives::OsCrash));
    assert_eq!(survives("bytes-write/c"), Some(Survives::ProcessCrash));
    assert_eq!(survives("bytes-read/c"), None);
    assert_eq!(survives("save-500/c"), Some(Survives::ProcessCrash));
    assert_eq!(survives("save-sync-500/c"), Some(disk.survives(Survives::PowerLoss)));
    assert_eq!(planned(&request(&[Kind::Bytes]), 1, &memory).unwrap().rows.len(), 2);
}

#[test]
fn a_disk_without_room_is_refused_in_one_line_that_says_what_would_do() {
    let full = |workloads: &[Kind], free| {
        let request = Request { lines: Some(1 << 30), ..request(workloads) };
        let refused = planned(&request, 1, &place(10 * GIB, free)).err()?.to_string();
        assert_eq!(refused.lines().count(), 1);
        Some(refused)
    };
    assert!(full(&[Kind::Bytes], GIB + (4 << 20)).unwrap().contains("--size"));
    assert!(full(&[Kind::Lines], 5 * GIB).unwrap().contains("Free some space"));
    assert!(full(&[Kind::Bytes], 3 * GIB).is_none());
    assert!(full(&[Kind::Save], GIB + (4 << 20)).is_none());
}

#[test]
fn the_announced_bytes_are_at_least_those_that_all_programs_write() {
    let asked = Request { size_bytes: Some(1 << 20), runs: 3, ..request(&[Kind::Bytes]) };
    let mut memory = place(1 << 40, 1 << 39);
    memory.in_memory = true;
    let rows = planned(&asked, 2, &memory).unwrap();
    assert_eq!(rows.runs_total(), 2 * 3 * 2);
    // Each program writes in three runs and in its trials, and the file that both programs read is
    // created once.
    let most = rows.written_bytes_max();
    let bounds = (2 * (3 + 1) + 1) << 20..=(2 * (3 + 2) + 3) << 20;
    assert!(bounds.contains(&most), "{most}");
    assert!(rows.space_bytes >= 2 << 20);
}

#[test]
fn the_runs_and_trials_of_all_rows_fill_the_time() {
    let disk = place(1 << 40, 1 << 39);
    let plan = planned(&request(&[]), 6, &disk).unwrap();
    let until = plan.within.unwrap().until;
    let all = plan.time(None);
    assert!(all <= until && all > until.mul_f64(0.99), "{all:?}");
    // A trial takes as long as a run.
    let programs = made(&request(&[]), 6, &disk).unwrap();
    let working = (programs.slice() + BESIDE) * (Request::RUNS + 1) * plan.rows.len() as u32;
    assert!(working <= until && working > until.mul_f64(0.99), "{working:?}");
    let fixed = Request { lines: Some(1), ..request(&[Kind::Lines]) };
    assert!(planned(&fixed, 1, &disk).unwrap().is_whole);
}
