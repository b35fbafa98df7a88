//! Tests with a sequential writer on a simulated disk.

use crate::jobs::tests::{path, run, spec, writes};
use crate::spec::{JobSpec, Think, WRITE};
use std::collections::HashSet;
use std::time::Duration;
use wrote::{Ioengine, Sim};
use wrote_result::Stop;

fn job(iodepth: u32, direct: bool) -> JobSpec {
    spec("job", WRITE).with(|job| {
        job.io.ioengine = if iodepth == 1 { Ioengine::Psync } else { Ioengine::IoUring };
        job.io.direct = direct;
        job.io.iodepth = iodepth;
    })
}

#[test]
fn a_pause_of_a_job_with_a_rate_is_in_no_latency() {
    // M5: the operations that follow a pause were due during it.
    let time = Duration::from_millis(300);
    let think = Some(Think { time, spin: Duration::ZERO, blocks: 1 });
    let mut job = job(1, false);
    job.pace.think = think;
    job.pace.write_rate_iops = Some(1000);
    job.pace.number_ios = Some(3);
    let done = run(&Sim::new(0), &job, &Stop::new()).unwrap();
    let latencies = &writes(&done).latency_ns;
    assert_eq!(latencies.len(), 3);
    let second = latencies.value_at_quantile(0.6);
    assert!(u128::from(second) < time.as_nanos() - 50_000_000, "{second}");
}

#[test]
fn no_two_sectors_that_are_written_are_equal() {
    // M2
    for (iodepth, direct) in [(1, false), (1, true), (4, false), (4, true)] {
        let sim = Sim::new(3);
        run(&sim, &job(iodepth, direct), &Stop::new()).unwrap();
        let contents = sim.contents(path()).unwrap();
        let sectors: HashSet<&[u8]> = contents.chunks(512).collect();
        assert_eq!(sectors.len(), contents.len() / 512);
    }
}
