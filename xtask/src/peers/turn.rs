//! Runs of two programs in turn.

use crate::failure::Failure;
use crate::run::check_interrupted;
use std::thread;
use std::time::Duration;

/// What a device gets to finish what it was given, before each run.
const SETTLE: Duration = Duration::from_millis(300);

/// Does both `pairs` times and hands each pair to `each`: what ours gave, and theirs.
pub fn in_turn<T>(
    pairs: u32,
    ours: impl Fn() -> Result<T, Failure>,
    theirs: impl Fn() -> Result<T, Failure>,
    mut each: impl FnMut(T, T),
) -> Result<(), Failure> {
    for pair in 0..pairs {
        // The order is swapped in every second pair: what comes second finds another device.
        if pair % 2 == 0 {
            let our = settled(&ours)?;
            each(our, settled(&theirs)?);
        } else {
            let their = settled(&theirs)?;
            each(settled(&ours)?, their);
        }
    }
    Ok(())
}

/// Measures once all that was written before is on the device.
fn settled<T>(measure: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    rustix::fs::sync();
    thread::sleep(SETTLE);
    check_interrupted()?;
    measure()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn every_second_pair_begins_with_the_other() {
        let order = RefCell::new(Vec::new());
        let run = |name: &'static str| {
            order.borrow_mut().push(name);
            Ok(name)
        };
        let mut pairs = Vec::new();
        in_turn(3, || run("ours"), || run("theirs"), |our, their| pairs.push((our, their)))
            .expect("nothing fails");
        assert_eq!(*order.borrow(), ["ours", "theirs", "theirs", "ours", "ours", "theirs"]);
        assert_eq!(pairs, [("ours", "theirs"); 3]);
    }

    #[test]
    fn a_run_that_fails_ends_it() {
        let fails = || Err::<(), _>(Failure::Failed("no room".into()));
        let failed = in_turn(2, || Ok(()), fails, |(), ()| {});
        assert_eq!(failed.expect_err("failed").to_string(), "no room");
    }
}
