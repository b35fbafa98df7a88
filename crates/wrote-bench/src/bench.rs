//! Runs a benchmark, from the request to the result document.

use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, Measured, Plan};
use crate::progress::{Announcement, Observer, Ticker};
use crate::request::Request;
use crate::rounds::measure_in_turn;
use crate::scenario::Scenario;
use crate::scenarios;
use crate::scratch::{self, Scratch};
use crate::settings::{CALIBRATION_SMALL_BYTES_MAX, Common, STREAM_BS_BYTES};
use crate::site::{SinceStart, Site};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use wrote::device::{self, Target};
use wrote_jobs::data::Data;
use wrote_jobs::findings::{Evidence, Shortened};
use wrote_jobs::machine::counters::Counters;
use wrote_jobs::machine::target::{device_of, shown_target};
use wrote_jobs::machine::watch::{self, Watch, Watched};
use wrote_jobs::machine::{host, target};
use wrote_jobs::peers::Peers;
use wrote_result::document::{self, Answer, Document, Program, RankFiles, Row, SCHEMA, Source};
use wrote_result::quoted;
use wrote_result::{Error, Stop, units};

/// The maximum block size at which the data generator is measured.
const GENERATOR_BS_BYTES_MAX: u64 = 16 << 20;

/// The share of the planned time; a benchmark that takes less has finished early.
const EARLY_SHARE: f64 = 0.9;

/// A benchmark: the scenarios of a request, measured by one process or by several ranks.
pub struct Bench<'a> {
    sides: Vec<Side<'a>>,
    peers: Peers<'a>,
}

/// A request and its scenarios.
struct Side<'a> {
    request: &'a Request,
    scenarios: Vec<&'a dyn Scenario>,
}

impl<'a> Bench<'a> {
    /// Returns a benchmark of all registered scenarios, run by one process.
    pub fn new(request: &'a Request) -> Bench<'a> {
        Bench { sides: vec![Side::new(request)], peers: Peers::ALONE }
    }

    /// Replaces the scenarios.
    pub fn scenarios(mut self, scenarios: &[&'a dyn Scenario]) -> Bench<'a> {
        self.sides[0].scenarios = scenarios.to_vec();
        self
    }

    /// Adds a request with the same number of runs. Its rows take turns with the rows of the first
    /// request.
    pub(crate) fn beside(mut self, request: &'a Request) -> Bench<'a> {
        self.sides.push(Side::new(request));
        self
    }

    /// Makes this process one rank of a group. All ranks make the same request; [`Request::path`]
    /// may differ. Rank 0 returns the combined result; every other rank returns only its own rows.
    /// If any rank fails, all ranks return an error; the error of rank 0 names the rank that
    /// failed.
    pub fn ranks(self, peers: Peers<'a>) -> Bench<'a> {
        Bench { peers, ..self }
    }

    /// Measures the scenarios, and returns the result with its findings and advice.
    ///
    /// The rows run in turn, in reverse order every second round (M8). Files are created in a new
    /// folder below [`Request::path`]. The folder is removed at the end, on an error, and when
    /// `stop` is raised.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an invalid request, [`Error::Interrupted`] if `stop` is raised before
    /// any row has run, otherwise [`Error::Failed`]. If `stop` is raised later, the result covers
    /// the runs so far and contains the finding `interrupted`.
    pub fn run(&self, stop: &Stop, observer: &mut dyn Observer) -> Result<Document, Error> {
        Ok(self.run_all(stop, observer)?.remove(0))
    }

    /// Like [`Bench::run`], but returns a result for each request.
    pub(crate) fn run_all(
        &self,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Document>, Error> {
        let (peers, keep) = (self.peers, self.sides[0].request.keep);
        let began = self.sides[0].request.began.unwrap_or_else(Instant::now);
        let started_at = format!("{:.0}", jiff::Timestamp::now());
        let disks: Vec<(Target, Target)> =
            self.sides.iter().map(|side| side.disk(peers)).collect::<Result<_, Error>>()?;
        let mut places: Vec<Place> = Vec::new();
        for (side, disk) in self.sides.iter().zip(disks) {
            places.push(side.make_place(disk, peers, observer)?);
        }
        let outcomes = match self.measure(&places, began, stop, observer) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                let ended = places.remove(0).scratch.end_for(peers, Err(error));
                return ended.map(|()| Vec::new());
            }
        };
        let mut kept = Vec::new();
        for Place { scratch, target, shown, leftovers, .. } in places {
            if keep {
                peers.barrier("the end")?;
                let folder = scratch.keep();
                observer.note(&format!("the test files are in {}", folder.display()));
            } else {
                match scratch.end_for(peers, Ok(())) {
                    // A file that cannot be removed does not invalidate the measurement.
                    Err(Error::Failed(left)) if !peers.are_many() => observer.note(&left),
                    ended => ended?,
                }
            }
            kept.push((target, shown, leftovers));
        }
        let host = host::host();
        let mut documents = Vec::new();
        for ((side, of), (target, shown, leftovers)) in self.sides.iter().zip(outcomes).zip(kept) {
            let (request, scenarios) = (side.request, &side.scenarios);
            let Outcome { speed, measured, generator_bytes_per_s, watched } = of;
            let rows: Vec<Row> = measured.iter().flat_map(|of| of.scenario.rows.clone()).collect();
            let evidence = Evidence {
                target: &shown,
                rows: &rows,
                debug_build: cfg!(debug_assertions),
                device_counts: device_of(&target).and_then(Counters::of).is_some(),
                in_memory: target.in_memory,
                generator_bytes_per_s,
                written_bytes_total: speed.written_bytes
                    + measured.iter().map(|of| of.written_bytes).sum::<u64>(),
                host: host.clone(),
                watched,
                overlaps: Vec::new(),
                leftovers,
                left_out: measured.iter().flat_map(|of| of.left_out.clone()).collect(),
                shortened: measured.iter().find_map(|of| of.shortened.clone()),
                burst: measured.iter().find_map(|of| of.burst),
                first_touch: speed.first_touch,
                interrupted: measured.iter().any(|of| of.is_interrupted),
            };
            let findings = scenarios::findings(scenarios, &evidence);
            let advice = scenarios.iter().flat_map(|scenario| scenario.advice(&evidence)).collect();
            let answers = side.answers(&evidence);
            drop(evidence);
            documents.push(Document {
                schema: SCHEMA.into(),
                wrote: Program::this(request.commit.clone()),
                started_at: started_at.clone(),
                elapsed_s: began.elapsed().as_secs_f64(),
                source: Some(Source::Bench),
                command: request.command.clone(),
                host: host.clone(),
                target: shown,
                ranks: peers.shown(request.rank_files),
                scenarios: measured.into_iter().map(|of| of.scenario).collect(),
                answers: (!answers.is_empty()).then_some(answers),
                fit: None,
                languages: None,
                findings,
                advice,
            });
        }
        Ok(documents)
    }

    /// Calibrates the disks, announces the work, and measures all plans of every side.
    fn measure(
        &self,
        places: &[Place],
        began: Instant,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Outcome>, Error> {
        let (sides, peers, clock) = (&self.sides, self.peers, SinceStart(began));
        let (mut sites, mut speeds, mut planned) = (Vec::new(), Vec::new(), Vec::new());
        for (side, place) in sides.iter().zip(places) {
            let site = Site {
                scenario: "calibration",
                target: &place.target,
                scratch: &place.scratch,
                stop,
                clock: &clock,
                keep: side.request.keep,
                peers,
                timed: Peers::ALONE,
                rank_files: side.request.rank_files,
            };
            let wanted = wanted(&side.plan(&place.room, None)?);
            let speed = Calibration::of(&wanted, &site, &side.request.common)?;
            planned.push(side.plan(&place.room, Some(&speed))?);
            sites.push(site);
            speeds.push(speed);
        }
        let announcement = self.announcement(&places[0], &planned, &speeds);
        observer.announce(&announcement);
        let answers = |rows: &[Row]| sides[0].answers(&Evidence::of_rows(&places[0].shown, rows));
        let mut ticker = Ticker::new(observer, announcement.runs, announcement.estimated);
        if sides.len() == 1 {
            ticker = ticker.answering(&answers);
        }
        let begin = |(speed, (side, place)): (Calibration, (&Side, &Place))| {
            let bs_bytes = side.request.common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
            let bs_bytes = bs_bytes.min(GENERATOR_BS_BYTES_MAX) as usize;
            let outcome = Outcome {
                speed,
                measured: Vec::new(),
                generator_bytes_per_s: Data::new(0, 0).measure(bs_bytes),
                watched: Watched::default(),
            };
            (outcome, Watch::begin(device_of(&place.target)))
        };
        let begun = speeds.iter().copied().zip(sides.iter().zip(places)).map(begin);
        let (mut outcomes, watches): (Vec<Outcome>, Vec<Watch>) = begun.unzip();
        // Time that a plan leaves unused passes to the next plan.
        let mut end = peers.of_first("the time", began.elapsed())?;
        let mut planned: Vec<_> = planned.into_iter().map(Vec::into_iter).collect();
        let mut is_interrupted = false;
        while !is_interrupted {
            // Plans with the same index take turns.
            let mut plans: Vec<Plan> = planned.iter_mut().filter_map(Iterator::next).collect();
            if plans.is_empty() {
                break;
            }
            let begin = end;
            end = end_of(&plans, &speeds, begin);
            match measure_in_turn(&mut plans, &speeds, begin, &sites, &mut ticker) {
                Err(Error::Interrupted)
                    if !outcomes[0].measured.is_empty() && !peers.are_many() =>
                {
                    let earlier = outcomes.iter_mut().flat_map(|of| &mut of.measured);
                    earlier.for_each(|of| of.is_interrupted = true);
                    break;
                }
                measured => {
                    for (of, one) in outcomes.iter_mut().zip(measured?) {
                        is_interrupted |= one.is_interrupted;
                        of.measured.push(one);
                    }
                }
            }
        }
        ticker.finish();
        // Each plan keeps to its part of the time. If the whole benchmark finished early, no plan
        // was short of time.
        let is_early = began.elapsed() < end.mul_f64(EARLY_SHARE);
        for of in outcomes.iter_mut().flat_map(|of| &mut of.measured) {
            of.shortened = of.shortened.take().filter(|_| !is_early).map(|of| Shortened {
                within: of.within.max(Duration::from_secs(end.as_secs_f64().ceil() as u64)),
                ..of
            });
        }
        for ((of, watch), place) in outcomes.iter_mut().zip(watches).zip(places) {
            of.watched = watch.end(device_of(&place.target));
        }
        Ok(outcomes)
    }

    /// Returns the announcement: the maximum number of bytes that the runs write, the space that
    /// they need, and the time that they take.
    fn announcement(
        &self,
        first: &Place,
        planned: &[Vec<Plan>],
        speeds: &[Calibration],
    ) -> Announcement {
        let ranks = u64::from(self.peers.ranks());
        let before = |(side, plans): (&Side, &Vec<Plan>)| match wanted(plans) {
            wanted if !wanted.contains(&Wanted::Stream) => CALIBRATION_SMALL_BYTES_MAX,
            _ => side.request.common.calibrated_bytes_max(),
        };
        let before: u64 = self.sides.iter().zip(planned).map(before).sum();
        let plans = || planned.iter().flatten();
        let most = plans().fold(before, |sum, of| sum.saturating_add(of.written_bytes_max()));
        let ends = planned.iter().zip(speeds).map(|(plans, speed)| {
            plans.iter().fold(Duration::ZERO, |before, plan| plan.end(Some(speed), before))
        });
        // The scenarios run one after another and remove their files, so the largest decides.
        let space = |side: &Vec<Plan>| side.iter().map(|of| of.space_bytes).max().unwrap_or(0);
        let space_bytes: u64 = planned.iter().map(space).sum();
        Announcement {
            folder: first.scratch.path().to_owned(),
            space_bytes_max: space_bytes * ranks,
            // Small files occupy whole blocks.
            written_bytes_max: most.max(space_bytes).saturating_mul(ranks),
            runs: plans().map(Plan::runs_total).sum(),
            is_limited: plans().all(Plan::is_limited),
            estimated: ends.sum(),
        }
    }
}

/// The disk of a side, and the folder of its run.
struct Place {
    target: Target,
    /// The part of the disk that a rank may use.
    room: Target,
    scratch: Scratch,
    shown: document::Target,
    leftovers: Vec<String>,
}

/// The measurements of a side.
struct Outcome {
    speed: Calibration,
    measured: Vec<Measured>,
    generator_bytes_per_s: f64,
    watched: Watched,
}

impl<'a> Side<'a> {
    fn new(request: &'a Request) -> Side<'a> {
        Side { request, scenarios: request.scenarios.all() }
    }

    fn answers(&self, evidence: &Evidence) -> Vec<Answer> {
        scenarios::answers(&self.scenarios, evidence)
    }

    /// Returns the plans of the request for a disk of this speed.
    fn plan(
        &self,
        room: &Target,
        speed: Option<&Calibration>,
    ) -> Result<Vec<Plan<'static>>, Error> {
        plan(&self.scenarios, self.request, room, speed)
    }

    /// Returns the disk, and the part of it that a rank may use. Refuses a request that can't be
    /// planned for that part.
    fn disk(&self, peers: Peers) -> Result<(Target, Target), Error> {
        scratch::check_writable(&self.request.path)?;
        let target = device::examine(&self.request.path)?;
        let room = share(&target, peers)?;
        refuse_shared(self.request, &self.plan(&room, None)?)?;
        Ok((target, room))
    }

    /// Creates the folder of the run, and describes its disk.
    fn make_place(
        &self,
        (target, room): (Target, Target),
        peers: Peers,
        observer: &mut dyn Observer,
    ) -> Result<Place, Error> {
        let path = &self.request.path;
        let leftovers = match peers.is_first() {
            true => report_leftovers(path, observer),
            false => Vec::new(),
        };
        let scratch = Scratch::make_for(path, peers)?;
        let mut shown = shown_target(&target, File::open(scratch.lock_file()).ok().as_ref());
        shown.limits = watch::limits(device_of(&target));
        Ok(Place { target, room, scratch, shown, leftovers })
    }
}

/// Returns the time at which plans that start at `begin` and take turns will finish.
fn end_of(plans: &[Plan], speeds: &[Calibration], begin: Duration) -> Duration {
    plans.iter().zip(speeds).fold(begin, |end, (plan, speed)| plan.end(Some(speed), end))
}

/// Refuses `--shared-file` for a scenario that creates its own kind of file.
fn refuse_shared(request: &Request, planned: &[Plan]) -> Result<(), Error> {
    let shares = request.rank_files != RankFiles::PerRank;
    match planned.iter().find(|plan| shares && !plan.shares_files) {
        Some(whole) => Err(Error::Usage(format!(
            "--shared-file: not for {}, which uses its own kind of file; ladder, peak, rand and \
             sustained can share one",
            whole.name
        ))),
        None => Ok(()),
    }
}

/// Returns the plans of the requested scenarios, in the order of the registry, for a disk of this
/// speed.
pub(crate) fn plan(
    scenarios: &[&dyn Scenario],
    request: &Request,
    target: &Target,
    speed: Option<&Calibration>,
) -> Result<Vec<Plan<'static>>, Error> {
    scenarios::check_names(scenarios, &request.only)?;
    request.common.check()?;
    let within = request.scenarios.ladder.within;
    let call = Call { only: &request.only, common: &request.common, target, within, speed };
    if let Some(alone) = scenarios.iter().find(|scenario| scenario.is_alone()) {
        return plan_each(&[*alone], &call);
    }
    for name in request.only.iter().filter(|_| request.common.rate.is_some()) {
        if scenarios.iter().any(|scenario| scenario.knows(name) && !scenario.takes_rate()) {
            return Err(Error::Usage(format!(
                "--rate: not for {name}, which has no single operation that could be due at a time"
            )));
        }
    }
    let planned = plan_each(scenarios, &call)?;
    let parts = planned.iter().filter(|plan| plan.written_bytes_max() < u64::MAX).count() as u32;
    let parts = parts * request.common.wear_parts.max(1);
    if parts < 2 || call.is_default() {
        return Ok(planned);
    }
    let common = Common { wear_parts: parts, ..request.common.clone() };
    plan_each(scenarios, &Call { common: &common, ..call })
}

fn plan_each(scenarios: &[&dyn Scenario], call: &Call) -> Result<Vec<Plan<'static>>, Error> {
    let mut planned = Vec::new();
    for scenario in scenarios {
        planned.extend(scenario.plan(call)?);
    }
    for plan in &mut planned {
        if call.within.is_some() && plan.within.is_none() {
            return Err(Error::Usage(format!(
                "--within: not for {}, whose runs a total time can't lengthen or shorten; use \
                 --time and --runs",
                plan.name
            )));
        }
        plan.is_sized = call.common.has_amount();
        plan.is_whole |= plan.is_sized && plan.within.is_none();
    }
    Ok(planned)
}

/// Returns the parts of the disk's speed that the plans need to know.
fn wanted(planned: &[Plan]) -> Vec<Wanted> {
    planned.iter().map(|plan| plan.wants).collect()
}

/// Reports the folders that killed runs left below `folder`, each with the command that removes it,
/// and returns their paths.
pub fn report_leftovers(folder: &Path, observer: &mut dyn Observer) -> Vec<String> {
    let dead = scratch::leftovers(folder).into_iter().filter(|left| !left.alive);
    dead.map(|left| {
        let path = left.path.display().to_string();
        observer.note(&format!(
            "{path} was left by a killed run ({}); `wrote clean {}` removes it",
            units::bytes(left.size_bytes),
            quoted(&[folder.display().to_string()]),
        ));
        path
    })
    .collect()
}

/// Returns the disk as one rank may use it: with an equal share of the free space of the fullest
/// disk, as if all ranks used that disk. The share is the same for each rank, so that all ranks
/// make the same plan.
fn share(target: &Target, peers: Peers) -> Result<Target, Error> {
    let mut shared = target.clone();
    let disk = (target::room_bytes(target), target.capacity_bytes, target.free_bytes);
    let ranks = u64::from(peers.ranks());
    let (capacity_bytes, free_bytes) = peers.agree("the room", disk, |all| {
        let (room_bytes, capacity_bytes, free_bytes) = all.into_iter().min().unwrap_or(disk);
        Ok((capacity_bytes, free_bytes - room_bytes.min(free_bytes) / ranks * (ranks - 1)))
    })?;
    (shared.capacity_bytes, shared.free_bytes) = (capacity_bytes, free_bytes);
    Ok(shared)
}
