//! The latencies of a closed and of an open loop on a disk that stalls once.

use crate::scene::{alone, run};
use crate::strange;
use crate::support;
use fixtures::or_skip;
use wrote_result::document::Latency;

const MS_NS: u64 = 1_000_000;

/// Returns the latencies of small writes during four seconds, with these additional options. The
/// disk stalls for one second.
fn through_a_stall(more: &str) -> Result<Latency, String> {
    let strange = strange::mount("--stall-after 2000000 --stall 1s")?;
    let job =
        format!("[small]\nrw=write\nbs=4k\nsize=4m\ndirect=1\ntime_based\nruntime=4\n{more}\n");
    let document = run(strange.path(), &job, "");
    Ok(support::row(&document, "small").latency_ns.expect("operations are timed"))
}

#[test]
#[ignore = "nightly"]
fn a_stall_of_a_second_is_seen_by_an_open_loop_and_not_by_a_closed_one() {
    alone(|| {
        // M5
        let closed = or_skip!(through_a_stall(""));
        let open = or_skip!(through_a_stall("rate_iops=500"));
        assert!(closed.max >= 1000 * MS_NS && open.max >= 1000 * MS_NS, "{closed:?} {open:?}");
        // In the closed loop, only one operation waits. In the open loop, each operation that is
        // due during that second waits, half of them for at least half a second.
        assert!(closed.count > 20, "{closed:?}");
        assert!(closed.p90 < 500 * MS_NS, "{closed:?}");
        assert!(open.p90 >= 500 * MS_NS, "{open:?}");
    });
}
