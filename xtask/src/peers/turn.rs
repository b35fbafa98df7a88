//! Runs of several programs in turn.

use crate::failure::Failure;
use crate::run::check_interrupted;
use std::thread;
use std::time::Duration;

/// What a device gets to finish what it was given, before each run.
const SETTLE: Duration = Duration::from_millis(300);

/// One run of one program.
pub type Run<'a, T> = &'a dyn Fn() -> Result<T, Failure>;

/// Does both `pairs` times and hands each pair to `each`: what ours gave, and theirs.
pub fn in_turn<T>(
    pairs: u32,
    ours: impl Fn() -> Result<T, Failure>,
    theirs: impl Fn() -> Result<T, Failure>,
    mut each: impl FnMut(T, T),
) -> Result<(), Failure> {
    in_rounds(pairs, &[&ours, &theirs], |round| {
        let mut round = round.into_iter();
        if let (Some(our), Some(their)) = (round.next(), round.next()) {
            each(our, their);
        }
    })
}

/// Does all of `runs` in each of the `rounds` and hands what a round gave to `each`, in their order.
pub fn in_rounds<T>(
    rounds: u32,
    runs: &[Run<T>],
    mut each: impl FnMut(Vec<T>),
) -> Result<(), Failure> {
    for round in 0..rounds {
        // Every second round runs backwards: what comes later finds another device.
        let is_backward = round % 2 == 1;
        let mut order: Vec<&Run<T>> = runs.iter().collect();
        if is_backward {
            order.reverse();
        }
        let mut gave = order.into_iter().map(settled).collect::<Result<Vec<T>, Failure>>()?;
        if is_backward {
            gave.reverse();
        }
        each(gave);
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
    fn of_several_every_second_round_runs_backwards_and_gives_them_in_their_order() {
        let order = RefCell::new(String::new());
        let run = |name: char| {
            order.borrow_mut().push(name);
            Ok(name)
        };
        let (a, b, c) = (|| run('a'), || run('b'), || run('c'));
        let mut rounds = Vec::new();
        in_rounds(2, &[&a, &b, &c], |round| rounds.push(round)).expect("nothing fails");
        assert_eq!(*order.borrow(), "abccba");
        assert_eq!(rounds, [['a', 'b', 'c'], ['a', 'b', 'c']]);
    }

    #[test]
    fn a_run_that_fails_ends_it() {
        let fails = || Err::<(), _>(Failure::Failed("no room".into()));
        let failed = in_turn(2, || Ok(()), fails, |(), ()| {});
        assert_eq!(failed.expect_err("failed").to_string(), "no room");
    }
}
