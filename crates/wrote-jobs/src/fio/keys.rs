//! The accepted keys: their names, and their effects on a job.

use super::draft::Draft;
use super::note::TEXTS;
use super::syntax::distribution;
use super::value::{KbBase, Size, Value};
use super::{draft, files, note, syntax};
use crate::spec::{Fallocate, Rw, Steady, SyncEach, Verify};
use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::time::Duration;
use wrote::engine::Options;
use wrote_result::document::Process;

pub(super) struct Key {
    /// The canonical name, which reports use, as in fio. If several keys share an effect, this
    /// lists all their names. A name after `/` is an alias of the name before it.
    names: &'static str,
    effect: Effect,
}

enum Effect {
    Set(fn(&mut Draft, &mut Value<'_>) -> Result<(), String>),
    /// Accepts only these values. The text explains why other values are refused.
    Only(&'static [String], &'static str),
    /// Has no effect here. The text gives the reason.
    Note(&'static str),
}

use Effect::{Note, Only, Set};

/// The values of `rw`.
const ORDERS: &[(&str, Rw)] = &[
    ("read", Rw { read: true, write: false, random: false }),
    ("write", Rw { read: false, write: true, random: false }),
    ("rw", Rw { read: true, write: true, random: false }),
    ("readwrite", Rw { read: true, write: true, random: false }),
    ("randread", Rw { read: true, write: false, random: true }),
    ("randwrite", Rw { read: false, write: true, random: true }),
    ("randrw", Rw { read: true, write: true, random: true }),
];
const KB_BASES: &[(&str, KbBase)] = &[("1024", KbBase::Reversed), ("1000", KbBase::Si)];

/// Any 32-bit number.
const ANY: RangeInclusive<u32> = 0..=u32::MAX;

/// The maximum number of clones of a section. Each clone is a thread.
const NUMJOBS_MAX: u32 = 256;

/// The maximum number of percentiles, as in fio.
const PERCENTILES_MAX: usize = 20;

impl Key {
    /// Applies the value of a key, whose canonical name is `name`, to a draft.
    pub fn take(&self, name: &str, draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
        match self.effect {
            Set(set) => set(draft, value),
            Note(reason) => {
                let quoted = super::note::quoted(name, value.text);
                value.note(format!("{quoted}: {reason}"));
                Ok(())
            }
            Only(taken, problem) => match value.text.unwrap_or("1") {
                "" => Err("has no value".into()),
                text if taken.iter().any(|taken| taken == text) => Ok(()),
                _ => Err(format!("{problem} (supported: {})", taken.join(", "))),
            },
        }
    }

    /// Returns the canonical form of `name`; `None` if the key does not have this name.
    fn canonical(&self, name: &str) -> Option<&'static str> {
        let mut keys = self.names.split(' ').map(|names| names.split('/'));
        keys.find(|names| names.clone().any(|known| known == name))?.next()
    }
}

/// Returns the key with this name, and its canonical name. The error states whether fio knows the
/// name, or suggests a similar one.
pub(super) fn find(name: &str) -> Result<(&'static Key, &'static str), String> {
    let known = all().find_map(|key| Some((key, key.canonical(name)?)));
    known.ok_or_else(|| note::unknown(name, all_names()))
}

pub(super) fn all_names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|key| key.names.split([' ', '/']))
}

fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(WITHOUT_EFFECT.iter())
}

const fn key(names: &'static str, effect: Effect) -> Key {
    Key { names, effect }
}

/// Builds the effect that stores a value in the draft.
macro_rules! set {
    ($draft:ident, $value:ident => $($field:ident).+ = $new:expr) => {
        Set(|$draft, $value| {
            $draft.$($field).+ = $new;
            Ok(())
        })
    };
}

/// The keys listed in `keys.toml`.
static WITHOUT_EFFECT: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let notes = TEXTS.notes.iter().map(|(names, reason)| key(names, Note(reason)));
    let only = TEXTS.only.iter().map(|(names, (taken, problem))| key(names, Only(taken, problem)));
    notes.chain(only).collect()
});

static KEYS: &[Key] = &[
    // The operations.
    key("name", set!(d, v => job.name = v.text()?.to_string())),
    key("description", Set(|_, _| Ok(()))),
    key("rw/readwrite", Set(rw)),
    key("rwmixread", set!(d, v => job.order.rwmixread_percent = v.within(0..=100)?)),
    key("rwmixwrite", set!(d, v => job.order.rwmixread_percent = 100 - v.within(0..=100)?)),
    key("bs/blocksize", Set(|d, v| merge(&mut d.bs, v.directions(syntax::one)?))),
    key("bsrange/blocksize_range", Set(|d, v| merge(&mut d.bsrange, v.directions(syntax::range)?))),
    key("bssplit", Set(|d, v| merge(&mut d.bssplit, v.directions(syntax::split)?))),
    key("ba/blockalign", set!(d, v => blockalign = Some(v.number()?))),
    key("norandommap", set!(d, v => job.order.norandommap = v.flag()?)),
    key("random_distribution", set!(d, v => job.order.random_distribution = distribution(v)?)),
    key("percentage_random", set!(d, v => job.order.percentage_random = part_random(v)?)),
    key("randseed", set!(d, v => randseed = Some(v.number()?))),
    key("size", Set(size)),
    key("io_size/io_limit", set!(d, v => io_size = unless_zero(v.size()?))),
    key("number_ios", set!(d, v => job.pace.number_ios = Some(v.number()?).filter(|&ios| ios > 0))),
    key("loops", set!(d, v => job.pace.loops = v.within(1..=u32::MAX)?)),
    key(
        "runtime/timeout",
        set!(d, v => job.pace.runtime = Some(v.time()?).filter(|time| !time.is_zero())),
    ),
    key("time_based", set!(d, v => job.pace.time_based = v.flag()?)),
    key("ramp_time", set!(d, v => job.pace.ramp_time = v.time()?)),
    key("startdelay", set!(d, v => job.pace.startdelay = v.time()?)),
    key("rate", Set(|d, v| merge(&mut d.rate, v.numbers()?))),
    key("rate_iops", Set(|d, v| merge(&mut d.rate_iops, v.numbers()?))),
    key("rate_process", set!(d, v => job.pace.rate_process = process(v)?)),
    key("thinktime", set!(d, v => thinktime = v.time_in(1)?)),
    key("thinktime_spin", set!(d, v => thinktime_spin = v.time_in(1)?)),
    key("thinktime_blocks", set!(d, v => thinktime_blocks = v.within(1..=u32::MAX)?)),
    key("filename", Set(filename)),
    key("directory", set!(d, v => directories = files::list(v)?)),
    key("filename_format", set!(d, v => filename_format = Some(files::format(v)?))),
    key("nrfiles/nr_files", set!(d, v => nrfiles = v.within(1..=crate::spec::NRFILES_MAX)?)),
    key("filesize", set!(d, v => filesize = Some(v.number()?).filter(|&bytes| bytes > 0))),
    key("offset/fileoffset", set!(d, v => offset = v.size()?)),
    key("offset_increment", set!(d, v => offset_increment = v.size()?)),
    key("fallocate", set!(d, v => job.files.fallocate = fallocate(v)?)),
    key("create_only", set!(d, v => job.files.create_only = v.flag()?)),
    key("overwrite", set!(d, v => job.files.overwrite = v.flag()?)),
    key("unlink", set!(d, v => job.files.unlink = v.flag()?)),
    key("invalidate", set!(d, v => job.files.invalidate = v.flag()?)),
    // The I/O method.
    key("ioengine", set!(d, v => job.io.ioengine = draft::engine(v)?)),
    key("iodepth", set!(d, v => job.io.iodepth = v.within(1..=Options::IODEPTH_MAX)?)),
    key("iodepth_batch/iodepth_batch_submit", set!(d, v => job.io.iodepth_batch = v.within(ANY)?)),
    key(
        "iodepth_batch_complete_min/iodepth_batch_complete",
        set!(d, v => job.io.iodepth_batch_complete_min = v.within(ANY)?),
    ),
    key("uncached/dontcache", set!(d, v => job.io.dontcache = v.flag()?)),
    key("atomic", set!(d, v => job.io.atomic = v.flag()?)),
    key("direct", set!(d, v => job.io.direct = v.flag()?)),
    key("buffered", set!(d, v => job.io.direct = !v.flag()?)),
    key("hipri", set!(d, v => job.io.hipri = v.flag()?)),
    key("fixedbufs", set!(d, v => job.io.fixedbufs = v.flag()?)),
    key("registerfiles", set!(d, v => job.io.registerfiles = v.flag()?)),
    key("sqthread_poll", set!(d, v => job.io.sqthread_poll = v.flag()?)),
    key("sqthread_poll_cpu", set!(d, v => job.io.sqthread_poll_cpu = Some(v.within(ANY)?))),
    // Durability and verification.
    key("sync", set!(d, v => job.writes.sync = sync(v)?)),
    key("fsync", set!(d, v => job.writes.fsync = every(v)?)),
    key("fdatasync", set!(d, v => job.writes.fdatasync = every(v)?)),
    key("end_fsync", set!(d, v => job.writes.end_fsync = v.flag()?)),
    key("verify", set!(d, v => job.writes.verify = verify(v)?)),
    // The data.
    key("zero_buffers", set!(d, v => zero_buffers = v.flag()?)),
    key("buffer_compress_percentage", set!(d, v => compress_percent = Some(v.within(0..=100)?))),
    key("buffer_pattern", set!(d, v => buffer_pattern = Some(syntax::pattern(v.text()?)?))),
    // Jobs, groups and reports.
    key("numjobs", set!(d, v => numjobs = v.within(1..=NUMJOBS_MAX)?)),
    key("stonewall/wait_for_previous", set!(d, v => stonewall = v.flag()?)),
    key("exitall", set!(d, v => job.pace.exitall = v.flag()?)),
    key("steadystate/ss", set!(d, v => job.pace.steady = Some(steady(v)?))),
    key("steadystate_duration/ss_dur", set!(d, v => steady_duration = v.time()?)),
    key("steadystate_ramp_time/ss_ramp", set!(d, v => steady_ramp = v.time()?)),
    key("write_bw_log write_lat_log write_iops_log", Set(|_, _| Ok(()))),
    key("log_avg_msec", set!(d, v => log_avg_msec = v.within(ANY)?)),
    key("group_reporting", set!(d, v => job.group_reporting = v.flag()?)),
    key("percentile_list", set!(d, v => job.percentiles = percentiles(v)?.into())),
    // Switches that are only kept among the job's options.
    key(
        "randrepeat allrandrepeat do_verify per_job_logs gtod_reduce disable_lat disable_clat \
         disable_bw_measurement/disable_bw",
        Set(|_, v| v.flag().map(drop)),
    ),
    key("kb_base", set!(d, v => kb_base = one_of(v, KB_BASES, "must be 1024 or 1000")?)),
];

fn merge<T>(kept: &mut [Option<T>; 2], said: [Option<T>; 2]) -> Result<(), String> {
    for (kept, said) in kept.iter_mut().zip(said) {
        *kept = said.or(kept.take());
    }
    Ok(())
}

/// Parses `rw`.
fn rw(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    let text = value.text()?.to_string();
    let (word, number) = text.split_once(':').map_or((&*text, None), |(a, b)| (a, Some(b)));
    if ["trim", "randtrim", "trimwrite", "randtrimwrite"].contains(&word) {
        return Err("fio trims only block devices, and jobs here never change those".into());
    }
    let Some((_, rw)) = ORDERS.iter().find(|(name, _)| *name == word) else {
        let hint = note::hint(word, ORDERS.iter().map(|(name, _)| *name));
        return Err(format!("must be read, write, rw, randread, randwrite or randrw{hint}"));
    };
    draft.job.order.rw = *rw;
    match number {
        None => Ok(()),
        Some("1") if rw.random => Ok(()),
        Some(_) if rw.random => {
            Err("each operation has its own random offset: leave out the :".into())
        }
        Some(_) => Err("sequential operations have no steps between them: leave out the :".into()),
    }
}

/// Returns the meaning of the value. The error for an unknown value is `problem`, with a suggestion
/// if there is a similar value.
fn one_of<T: Clone>(value: &Value<'_>, known: &[(&str, T)], problem: &str) -> Result<T, String> {
    let text = value.text()?;
    let meant = known.iter().find(|(name, _)| *name == text);
    let names = known.iter().map(|(name, _)| *name);
    meant
        .map(|(_, meant)| meant.clone())
        .ok_or_else(|| format!("{problem}{}", note::hint(text, names)))
}

/// Parses `size`. 0 and 100% mean the whole file.
fn size(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    (draft.size, draft.size_percent) = match value.size()? {
        Size::Bytes(0) | Size::Percent(100) => (None, None),
        Size::Bytes(bytes) => (Some(bytes), None),
        Size::Percent(percent) => (None, Some(percent)),
    };
    Ok(())
}

/// Parses the percentages of random operations for reads and for writes; `None` if all are random.
fn part_random(value: &mut Value<'_>) -> Result<Option<[u32; 2]>, String> {
    let parts = value.numbers()?.map(|part| part.unwrap_or(100));
    match parts {
        [100, 100] => Ok(None),
        [0..=100, 0..=100] => Ok(Some(parts.map(|percent| percent as u32))),
        _ => Err("must be a whole number from 0 to 100".into()),
    }
}

fn unless_zero(size: Size) -> Option<Size> {
    Some(size).filter(|&size| size != Size::Bytes(0))
}

/// Parses `filename`. A second line in the same section adds files, as in fio. A section's files
/// replace the files of `[global]`.
fn filename(draft: &mut Draft, value: &mut Value<'_>) -> Result<(), String> {
    let mut named = files::filenames(value)?;
    if draft.said_here("filename") {
        named.splice(0..0, std::mem::take(&mut draft.filenames));
    }
    draft.filenames = named;
    Ok(())
}

fn fallocate(value: &mut Value<'_>) -> Result<Fallocate, String> {
    use Fallocate::{Keep, Native, None, Truncate};
    let known = [("none", None), ("0", None), ("native", Native), ("posix", Native), ("1", Native)];
    let known = [&known[..], &[("keep", Keep), ("truncate", Truncate)]].concat();
    one_of(value, &known, "must be none, native, posix, keep or truncate")
}

fn sync(value: &mut Value<'_>) -> Result<SyncEach, String> {
    use SyncEach::{Dsync, No, Sync};
    let known = [("none", No), ("0", No), ("sync", Sync), ("1", Sync), ("dsync", Dsync)];
    one_of(value, &known, "must be none, sync or dsync")
}

fn process(value: &mut Value<'_>) -> Result<Process, String> {
    let known = [("linear", Process::Linear), ("poisson", Process::Poisson)];
    one_of(value, &known, "must be linear or poisson")
}

/// Parses `fsync` and `fdatasync`: a number of writes. 0 means never, and returns `None`.
fn every(value: &mut Value<'_>) -> Result<Option<u32>, String> {
    Ok(Some(value.within(ANY)?).filter(|&writes| writes > 0))
}

fn verify(value: &mut Value<'_>) -> Result<Option<Verify>, String> {
    let text = value.text()?.to_owned();
    match text.as_str() {
        "0" | "none" => return Ok(None),
        "crc32c" | "crc32c-intel" => {}
        "md5" | "crc64" | "crc32" | "crc16" | "crc7" | "xxhash" | "sha512" | "sha256" | "sha1"
        | "sha3-224" | "sha3-256" | "sha3-384" | "sha3-512" | "meta" | "pattern" => {
            value.note(format!("verify={text}: blocks get a CRC32C instead"));
        }
        _ => return Err("no such checksum; only crc32c is used here".into()),
    }
    Ok(Some(Verify { after_writes: true }))
}

/// Parses `steadystate`: `iops:2%`, `bw:100`, `iops_slope:0.3%`.
fn steady(value: &mut Value<'_>) -> Result<Steady, String> {
    let refused = "must be iops, iops_slope, bw or bw_slope, a : and a limit, as in iops:2%";
    let (word, limit) = value.text()?.split_once(':').ok_or(refused)?;
    let (rate, slope) = word.strip_suffix("_slope").map_or((word, false), |rate| (rate, true));
    let number = limit.trim_end_matches('%');
    let limit = number.parse().ok().filter(|limit: &f64| *limit >= 0.0);
    let (iops, limit) = match (rate, limit) {
        ("iops", Some(limit)) => (true, limit),
        ("bw", Some(limit)) => (false, limit),
        _ => return Err(refused.into()),
    };
    let percent = value.text()?.ends_with('%');
    Ok(Steady { iops, slope, limit, percent, over: Duration::ZERO, ramp: Duration::ZERO })
}

fn percentiles(value: &mut Value<'_>) -> Result<Vec<f64>, String> {
    let percentile = |text: &str| {
        let number = text.trim().parse().ok().filter(|number| *number > 0.0 && *number <= 100.0);
        number.ok_or_else(|| {
            format!("{text} is not a number above 0 and up to 100; : is between them")
        })
    };
    let mut list: Vec<f64> = value.text()?.split(':').map(percentile).collect::<Result<_, _>>()?;
    if list.len() > PERCENTILES_MAX {
        return Err(format!("there are at most {PERCENTILES_MAX} percentiles"));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}
