//! The reduction of a program that breaks a promise.

use crate::verbs::sim::program::{Life, Program, Step};

/// Removes lives, steps and faults, and shortens records, as long as `breaks` stays true.
pub fn smallest(program: &Program, breaks: impl Fn(&Program) -> bool) -> Program {
    let mut least = program.clone();
    loop {
        let Some(smaller) = smaller(&least).into_iter().find(&breaks) else { return least };
        least = smaller;
    }
}

/// Returns the programs that lack one part, largest part first.
fn smaller(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    for number in 0..program.lives.len() {
        let mut without = program.clone();
        without.lives.remove(number);
        all.push(without);
    }
    for (number, life) in program.lives.iter().enumerate() {
        for smaller in smaller_lives(life) {
            let mut with = program.clone();
            with.lives[number] = smaller;
            all.push(with);
        }
    }
    all
}

fn smaller_lives(life: &Life) -> Vec<Life> {
    let mut all = Vec::new();
    for number in 0..life.planned.len() {
        let mut without = life.clone();
        without.planned.remove(number);
        all.push(without);
    }
    for number in 0..life.steps.len() {
        let mut without = life.clone();
        without.steps.remove(number);
        all.push(without);
    }
    for (number, step) in life.steps.iter().enumerate() {
        if let Step::Append { len, how, flavour } = *step
            && len > 8
        {
            let mut shorter = life.clone();
            shorter.steps[number] = Step::Append { len: len / 2, how, flavour };
            all.push(shorter);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::sim::program::Step;

    fn syncs(program: &Program) -> usize {
        let steps = program.lives.iter().flat_map(|life| &life.steps);
        steps.filter(|step| matches!(step, Step::Sync)).count()
    }

    #[test]
    fn what_is_not_needed_is_taken_away() {
        let large = (0..).map(Program::of_seed).find(|program| syncs(program) > 1).unwrap();
        let least = smallest(&large, |program| syncs(program) > 0);
        assert_eq!(least.lives.len(), 1);
        assert_eq!(least.lives[0].steps.len(), 1);
        assert!(least.lives[0].planned.is_empty());
    }
}
