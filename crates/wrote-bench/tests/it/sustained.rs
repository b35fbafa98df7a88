//! Tests of the scenario `sustained` on a real folder: its counts and leftovers.

use fixtures::folder;
use std::time::Duration;
use wrote_bench::{Bench, Common, Long, Observer, Progress, Request, Scenarios};
use wrote_result::{Error, Stop};

fn request(folder: &tempfile::TempDir) -> Request {
    Request {
        only: vec!["sustained".into()],
        common: Common {
            size_bytes: Some(24 << 20),
            stream_bs_bytes: Some(64 << 10),
            iodepth: Some(4),
            ..Common::default()
        },
        scenarios: Scenarios {
            sustained: Long { idle: Some(Duration::ZERO) },
            ..Scenarios::default()
        },
        ..Request::new(folder.path().to_owned())
    }
}

fn is_empty(folder: &tempfile::TempDir) -> bool {
    folder.path().read_dir().unwrap().next().is_none()
}

#[test]
fn the_samples_add_up_to_the_bytes_that_were_asked_for_and_the_file_is_gone() {
    let folder = folder();
    let document = Bench::new(&request(&folder)).run(&Stop::new(), &mut ()).unwrap();
    let [scenario] = &document.scenarios[..] else { panic!("{document:?}") };
    let [row] = &scenario.rows[..] else { panic!("{scenario:?}") };
    assert_eq!(
        (scenario.name.as_str(), row.name.as_str()),
        ("sustained", "sustained/direct-io_uring")
    );
    assert_eq!((row.bytes_per_run, row.runs.len()), (24 << 20, 1));
    assert_eq!(row.latency_ns.unwrap().count, (24 << 20) / (64 << 10));
    let sustained = row.sustained.as_ref().unwrap();
    assert_eq!((sustained.written_bytes(), sustained.file_bytes), (24 << 20, 24 << 20));
    assert!(sustained.samples.is_sorted_by(|a, b| a.end_bytes < b.end_bytes && a.end_s < b.end_s));
    let last = sustained.samples.last().unwrap();
    assert!(last.end_s <= row.runs[0].elapsed_s, "{last:?}");
    assert_eq!((sustained.idle_s, sustained.recovered_bytes_per_s), (None, None));
    assert!(is_empty(&folder));
}

#[test]
fn a_time_ends_it_and_a_rate_holds_it() {
    let folder = folder();
    let rate = wrote_jobs::rate::Rate {
        amount: wrote_jobs::rate::Amount::OperationsPerS(100),
        process: Default::default(),
    };
    let time = Some(Duration::from_millis(200));
    let mut request = request(&folder);
    (request.common.size_bytes, request.common.time) = (None, time);
    request.common.rate = Some(rate);
    let document = Bench::new(&request).run(&Stop::new(), &mut ()).unwrap();
    let row = &document.scenarios[0].rows[0];
    // 21 operations are due in this time. After a long sleep, up to `iodepth` more are started.
    assert!((1..=25).contains(&row.latency_ns.unwrap().count), "{row:?}");
    assert_eq!(row.settings.asked.rate_iops, Some(100.0));
}

/// An observer that requests a stop when the run reports progress.
struct Impatient<'a>(&'a Stop);

impl Observer for Impatient<'_> {
    fn progress(&mut self, progress: &Progress) {
        assert_eq!(progress.runs, 1);
        if progress.fraction > 0.0 {
            self.0.request();
        }
    }
}

#[test]
fn it_tells_how_far_it_is_and_leaves_nothing_when_it_is_interrupted() {
    let (folder, stop) = (folder(), Stop::new());
    let rate = wrote_jobs::rate::Rate {
        amount: wrote_jobs::rate::Amount::OperationsPerS(20),
        process: Default::default(),
    };
    // The run would take an hour at a low rate.
    let mut request = request(&folder);
    request.common.time = Some(Duration::from_secs(3600));
    (request.common.size_bytes, request.common.rate) = (Some(1 << 30), Some(rate));
    let ended = Bench::new(&request).run(&stop, &mut Impatient(&stop));
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    assert!(is_empty(&folder));
}
