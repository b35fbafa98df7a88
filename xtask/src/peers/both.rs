//! One job file by both programs, in turn.

use super::job::Job;
use super::measured::Measured;
use super::programs::{Programs, Setting, Side};
use super::table::Line;
use super::turn::in_turn;
use crate::failure::Failure;

/// What both are to do.
#[derive(Clone, Copy)]
pub struct JobTurns<'a> {
    /// Both programs.
    pub programs: &'a Programs,
    /// Where and how they run.
    pub setting: Setting<'a>,
    /// The job file.
    pub job: &'a Job,
    /// Bytes of each operation.
    pub operation_bytes: u64,
    /// Bytes of all of them, where the job says how many.
    pub total_bytes: Option<u64>,
    /// What comes before each run.
    pub prepare: &'a dyn Fn() -> Result<(), Failure>,
}

impl JobTurns<'_> {
    /// Adds `pairs` pairs of runs to `line`. Each run's CPU time is without the start-up's.
    pub fn measure(&self, mut line: Line, pairs: u32) -> Result<Line, Failure> {
        (self.prepare)()?;
        self.programs.check_fallbacks(self.job, self.operation_bytes, self.setting)?;
        let (our_start_up_s, their_start_up_s) =
            (self.start_up_cpu_s(Side::Wrote)?, self.start_up_cpu_s(Side::Fio)?);
        in_turn(
            pairs,
            || self.run(Side::Wrote, our_start_up_s),
            || self.run(Side::Fio, their_start_up_s),
            |ours, theirs| line.add(ours, theirs),
        )?;
        Ok(line)
    }

    fn start_up_cpu_s(&self, side: Side) -> Result<f64, Failure> {
        let JobTurns { programs, setting, job, operation_bytes, prepare, .. } = *self;
        programs.start_up_cpu_s(side, job, operation_bytes, setting, prepare)
    }

    fn run(&self, side: Side, start_up_s: f64) -> Result<Measured, Failure> {
        (self.prepare)()?;
        let ran = self.programs.run(side, self.job, self.setting)?;
        ran.check_operations(side, self.operation_bytes)?;
        match self.total_bytes {
            Some(bytes) if bytes != ran.output.bytes => {
                let (name, wrong_bytes) = (side.name(), ran.output.bytes);
                Err(Failure::Failed(format!("{name}: {wrong_bytes} bytes, not {bytes}")))
            }
            _ => Ok(ran.measured(start_up_s)),
        }
    }
}
