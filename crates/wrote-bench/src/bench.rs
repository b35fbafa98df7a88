//! Runs a benchmark from a request to the result document.

use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, Measured, Plan};
use crate::progress::{Announcement, Observer, Ticker};
use crate::request::Request;
use crate::scenario::Scenario;
use crate::scenarios;
use crate::scratch::{self, Scratch};
use crate::settings::{Common, STREAM_BS_BYTES};
use crate::site::{SinceStart, Site};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use wrote::device::{self, Target};
use wrote_jobs::data::Data;
use wrote_jobs::findings::{self, Evidence, Sharing, User};
use wrote_jobs::machine::counters::Counters;
use wrote_jobs::machine::target::{device_of, shown_target};
use wrote_jobs::machine::watch::{self, Watch};
use wrote_jobs::machine::{host, target};
use wrote_jobs::peers::{Alone, Peers};
use wrote_result::document::{Document, Program, RankFiles, Row, SCHEMA, Source};
use wrote_result::quoted;
use wrote_result::{Error, Stop, units};

/// The block size of the generator's own measurement, unless the stream's is smaller.
const GENERATOR_BS_BYTES_MAX: u64 = 16 << 20;

/// A benchmark: the scenarios of a request, measured by one process or by several ranks.
pub struct Bench<'a> {
    request: &'a Request,
    scenarios: Vec<&'a dyn Scenario>,
    peers: &'a dyn Peers,
    speed: Option<&'a OnceLock<Calibration>>,
}

impl<'a> Bench<'a> {
    /// Returns the benchmark of the scenarios of the registry by one process.
    pub fn new(request: &'a Request) -> Bench<'a> {
        Bench { request, scenarios: request.scenarios.all(), peers: &Alone, speed: None }
    }

    /// Sets other scenarios.
    pub fn scenarios(self, scenarios: &[&'a dyn Scenario]) -> Bench<'a> {
        Bench { scenarios: scenarios.to_vec(), ..self }
    }

    /// Makes this process one rank of a group. All ranks make the same request; [`Request::path`]
    /// may differ. Rank 0 returns the combined result; every other rank returns only its own rows.
    /// Where any rank fails, all end with an error, which names the rank on rank 0.
    pub fn ranks(self, peers: &'a dyn Peers) -> Bench<'a> {
        Bench { peers, ..self }
    }

    /// Sets the speed of the disk. The first calibration fills it, and later ones use it.
    pub(crate) fn speed(self, speed: &'a OnceLock<Calibration>) -> Bench<'a> {
        Bench { speed: Some(speed), ..self }
    }

    /// Announces the benchmark without creating anything; the announced folder is the request's.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] and [`Error::Failed`] like [`Bench::run`], as far as planning detects them.
    pub(crate) fn outlook(&self) -> Result<Announcement, Error> {
        let Bench { request, scenarios, peers, .. } = self;
        scratch::check_writable(&request.path)?;
        let target = device::examine(&request.path)?;
        let planned = plan(scenarios, request, &share(&target, *peers)?, None)?;
        Ok(announcement(request.path.clone(), &planned, request, (peers.ranks(), None)))
    }

    /// Measures the scenarios, and reports findings and advice.
    ///
    /// Rows run in turn, every second round backwards (M8). Files are created in a folder below
    /// [`Request::path`], which is removed at the end, on an error, and when `stop` is raised.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an invalid request, [`Error::Interrupted`] if `stop` is raised before
    /// any row had a run, else [`Error::Failed`]. If `stop` is raised later, the result covers the
    /// runs so far and has the finding `interrupted`.
    pub fn run(&self, stop: &Stop, observer: &mut dyn Observer) -> Result<Document, Error> {
        let Bench { request, scenarios, peers, .. } = self;
        let (peers, own_speed) = (*peers, OnceLock::new());
        let speed = self.speed.unwrap_or(&own_speed);
        let began = request.began.unwrap_or_else(Instant::now);
        let started_at = format!("{:.0}", jiff::Timestamp::now());
        scratch::check_writable(&request.path)?;
        let target = device::examine(&request.path)?;
        let room = share(&target, peers)?;
        let mut planned = plan(scenarios, request, &room, None)?;
        refuse_shared(request, &planned)?;
        let leftovers = match peers.is_first() {
            true => report_leftovers(&request.path, observer),
            false => Vec::new(),
        };
        let scratch = Scratch::make_for(&request.path, peers)?;
        let mut shown = shown_target(&target, File::open(scratch.lock_file()).ok().as_ref());
        shown.limits = watch::limits(device_of(&target));
        let clock = SinceStart(began);
        let site = Site {
            scenario: "calibration",
            target: &target,
            scratch: &scratch,
            stop,
            clock: &clock,
            keep: request.keep,
            peers,
            together: None,
            ranks: request.ranks,
        };
        let mut calibrated_bytes = 0;
        if speed.get().is_none() {
            match Calibration::of(wanted(&planned), &site.apart(), &request.common) {
                Ok(measured) => calibrated_bytes = speed.get_or_init(|| measured).written_bytes,
                Err(error) => return scratch.end_for(peers, Err(error)),
            }
        }
        let speed = speed.get();
        planned = plan(scenarios, request, &room, speed)?;
        let announcement =
            announcement(scratch.path().to_owned(), &planned, request, (peers.ranks(), speed));
        observer.announce(&announcement);
        let answers =
            |rows: &[Row]| scenarios::answers(scenarios, &Evidence::of_rows(&shown, rows));
        let ticker = Ticker::new(observer, announcement.runs, announcement.estimated);
        let mut ticker = ticker.answering(&answers);
        let bs_bytes = request.common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
        let generator_bytes_per_s =
            Data::new(0, 0).measure(bs_bytes.min(GENERATOR_BS_BYTES_MAX) as usize);
        let watch = Watch::begin(device_of(&target));
        // The time that a plan leaves is the next one's.
        let mut end = match peers.of_first("the time", began.elapsed()) {
            Ok(now) => now,
            Err(error) => return scratch.end_for(peers, Err(error)),
        };
        let measure = |mut planned: Plan| {
            let begin = end;
            end = planned.end(speed, begin);
            planned.measure(speed, begin, &Site { scenario: planned.name, ..site }, &mut ticker)
        };
        let measured = match until_interrupted(planned.into_iter().map(measure), peers) {
            Ok(measured) if request.keep => {
                ticker.finish();
                peers.barrier("the end")?;
                let folder = scratch.keep();
                observer.note(&format!("the test files are in {}", folder.display()));
                measured
            }
            Ok(measured) => {
                ticker.finish();
                // What cannot be removed does not invalidate what was measured.
                match scratch.end_for(peers, Ok(())) {
                    Err(Error::Failed(left)) if !peers.are_many() => observer.note(&left),
                    ended => ended?,
                }
                measured
            }
            Err(error) => return scratch.end_for(peers, Err(error)),
        };
        let watched = watch.end(device_of(&target));
        let host = host::host();
        let rows: Vec<Row> = measured.iter().flat_map(|of| of.scenario.rows.clone()).collect();
        let evidence = Evidence {
            target: &shown,
            rows: &rows,
            debug_build: cfg!(debug_assertions),
            device_counts: device_of(&target).and_then(Counters::of).is_some(),
            in_memory: target.in_memory,
            generator_bytes_per_s,
            written_bytes_total: calibrated_bytes
                + measured.iter().map(|of| of.written_bytes).sum::<u64>(),
            host: host.clone(),
            watched,
            overlaps: Vec::new(),
            leftovers,
            left_out: measured.iter().flat_map(|of| of.left_out.clone()).collect(),
            shortened: measured.iter().find_map(|of| of.shortened.clone()),
            burst: measured.iter().find_map(|of| of.burst),
            first_touch: speed.and_then(|speed| speed.first_touch),
            interrupted: measured.iter().any(|of| of.is_interrupted),
            sharing: sharing(&target, request, peers)?,
        };
        let findings = findings::of_all_ranks(peers, &evidence, |evidence| {
            scenarios::findings(scenarios, evidence)
        })?;
        let ranks = evidence.sharing.as_ref().map(|sharing| sharing.ranks.clone());
        let advice = scenarios.iter().flat_map(|scenario| scenario.advice(&evidence)).collect();
        let answers = scenarios::answers(scenarios, &evidence);
        Ok(Document {
            schema: SCHEMA.into(),
            wrote: Program::this(request.commit.clone()),
            started_at,
            elapsed_s: began.elapsed().as_secs_f64(),
            source: Some(Source::Bench),
            command: request.command.clone(),
            host,
            target: shown,
            ranks,
            scenarios: measured.into_iter().map(|of| of.scenario).collect(),
            answers: (!answers.is_empty()).then_some(answers),
            fit: None,
            languages: None,
            findings,
            advice,
        })
    }
}

/// Returns the measurements made before the user asked to stop, if any.
fn until_interrupted(
    all: impl Iterator<Item = Result<Measured, Error>>,
    peers: &dyn Peers,
) -> Result<Vec<Measured>, Error> {
    let mut measured: Vec<Measured> = Vec::new();
    for one in all {
        match one {
            Err(Error::Interrupted) if !measured.is_empty() && !peers.are_many() => {
                measured.iter_mut().for_each(|of| of.is_interrupted = true);
                break;
            }
            one => measured.push(one?),
        }
        if measured.last().is_some_and(|of| of.is_interrupted) {
            break;
        }
    }
    Ok(measured)
}

/// Refuses files that ranks share of a scenario that makes its own.
fn refuse_shared(request: &Request, planned: &[Plan]) -> Result<(), Error> {
    let shares = request.ranks.files != RankFiles::PerRank;
    match planned.iter().find(|plan| shares && !plan.shares_files) {
        Some(whole) => Err(Error::Usage(format!(
            "--shared-file: {} makes its own kind of file; ladder, peak, rand and sustained can \
             share one",
            whole.name
        ))),
        None => Ok(()),
    }
}

/// Plans the requested scenarios, in the order of the registry, for a disk of this speed.
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
                "--rate: {name} times whole files, and no single operation that could be due at a \
                 time"
            )));
        }
    }
    let planned = plan_each(scenarios, &call)?;
    let parts = planned.iter().filter(|plan| plan.written_bytes_max() < u64::MAX).count() as u32;
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
        plan.is_whole |= call.common.has_amount() && plan.within.is_none();
    }
    Ok(planned)
}

/// Returns the part of the disk's speed that the plans want.
fn wanted(planned: &[Plan]) -> Wanted {
    planned.iter().map(|plan| plan.wants).max().unwrap_or(Wanted::Flush)
}

/// Announces the bytes that the runs write at most, and the time of all of them.
fn announcement(
    folder: PathBuf,
    planned: &[Plan],
    request: &Request,
    (ranks, speed): (u32, Option<&Calibration>),
) -> Announcement {
    let ranks = u64::from(ranks);
    let before = match wanted(planned) {
        Wanted::Stream => request.common.calibrated_bytes_max(),
        Wanted::Flush => 0,
    };
    let most = planned.iter().fold(before, |sum, of| sum.saturating_add(of.written_bytes_max()));
    Announcement {
        folder,
        // Scenarios run one after another, and each removes its files.
        space_bytes_max: planned.iter().map(|of| of.space_bytes).max().unwrap_or(0) * ranks,
        written_bytes_max: most.saturating_mul(ranks),
        runs: planned.iter().map(Plan::runs_total).sum(),
        is_limited: planned.iter().all(Plan::is_limited),
        estimated: planned.iter().fold(Duration::ZERO, |before, plan| plan.end(speed, before)),
        estimated_slowed: planned.iter().map(|of| of.afterwards).sum(),
    }
}

/// Reports folders left by killed runs, and the command that removes them.
pub fn report_leftovers(folder: &Path, observer: &mut dyn Observer) -> Vec<String> {
    let dead = scratch::leftovers(folder).into_iter().filter(|left| !left.alive);
    dead.map(|left| {
        let path = left.path.display().to_string();
        observer.note(&format!(
            "{path} was left by a run that was killed ({}); `wrote clean {}` removes it",
            units::bytes(left.size_bytes),
            quoted(&[folder.display().to_string()]),
        ));
        path
    })
    .collect()
}

/// Returns the disk with the space that a rank may use, the same for each, so that all plan alike.
///
/// A disk's space is divided between the ranks that use it. If no block device identifies disks, as
/// on network storage, all ranks are assumed to share one.
///
/// # Errors
///
/// Like [`Peers::meet`].
pub fn share(target: &Target, peers: &dyn Peers) -> Result<Target, Error> {
    if !peers.are_many() {
        return Ok(target.clone());
    }
    let device = device_of(target).map(|device| device.name.clone());
    let mine = (device, target.capacity_bytes, target.free_bytes, target.path.clone());
    let places = peers.places();
    let (path, capacity_bytes, free_bytes) = peers.agree("the room", mine, |all| {
        let users = |rank: usize| {
            let shares = |(other, theirs): (usize, &(Option<String>, u64, u64, PathBuf))| {
                let is_beside = places.of_rank[other] == places.of_rank[rank];
                theirs.0 == all[rank].0 && (is_beside || theirs.0.is_none())
            };
            all.iter().enumerate().filter(|one| shares(*one)).count() as u64
        };
        let rooms = all.iter().enumerate().map(|(rank, (_, capacity_bytes, free_bytes, path))| {
            let room_bytes = target::budget(*capacity_bytes, *free_bytes);
            let kept_bytes = free_bytes - room_bytes;
            (room_bytes / users(rank), *capacity_bytes, kept_bytes, path.clone())
        });
        let known = rooms.filter(|(_, capacity_bytes, ..)| *capacity_bytes > 0);
        let least = known.min().map(|(room_bytes, capacity_bytes, kept_bytes, path)| {
            (path, capacity_bytes, room_bytes + kept_bytes)
        });
        Ok(least.unwrap_or((all[0].3.clone(), 0, 0)))
    })?;
    // The path with the least space, for error messages.
    let mut shared = target.clone();
    (shared.path, shared.capacity_bytes, shared.free_bytes) = (path, capacity_bytes, free_bytes);
    Ok(shared)
}

/// Returns the information about ranks that findings need; only on rank 0.
fn sharing(
    target: &Target,
    request: &Request,
    peers: &dyn Peers,
) -> Result<Option<Sharing>, Error> {
    if !peers.are_many() {
        return Ok(None);
    }
    let device = device_of(target).map(|device| device.name.clone());
    let user = User { path: request.path.display().to_string(), device };
    let users = peers.gather("the devices", user)?;
    let places = peers.places();
    let shift = request.ranks.reorder.then(|| peers.shift());
    let ranks = places.shown(request.ranks.files, shift);
    let own_paths = request.ranks.own_paths;
    Ok(peers.is_first().then_some(Sharing { ranks, users, own_paths }))
}
