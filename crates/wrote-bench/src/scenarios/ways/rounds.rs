//! One run of each method: creates the source, measures the time of the method, and measures its
//! cost.

use super::plan::Runs;
use super::write::{self, Task};
use super::{Kind, Way, dd};
use crate::plan::{OneRun, Prepared, Turn, Work};
use crate::progress::Ticker;
use crate::site::{self, Site};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wrote_jobs::clock::clocked;
use wrote_jobs::histogram;
use wrote_jobs::jobs::lay_out;
use wrote_jobs::machine::usage;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::page_cache;
use wrote_jobs::report::{self, Repeated};
use wrote_result::Error;
use wrote_result::document::{Fallback, Row, Run, Settings};

impl Work for Runs {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let output = output(site);
        let why_not = |(number, way): (usize, &&Way)| match way.kind {
            Kind::Dd { direct } => dd::why_not(&output, direct).map(|because| (number, because)),
            _ => None,
        };
        let left_out = self.ways.iter().enumerate().filter_map(why_not).collect();
        make_source(self.sizes.file_bytes, &source(site), site)?;
        Ok(Prepared { written_bytes: self.sizes.file_bytes, left_out })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.ways[at.row];
        let run = Files { site, source: source(site), output: output(site) };
        let size_bytes = self.sizes.of(way);
        Ok(run.run(way, size_bytes)?.row(row, way.asked(size_bytes)))
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        site::clear(&[output(site)], site.scratch.path())
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[source(site)])
    }
}

/// Returns the file that copies read, and whose bytes the other methods write.
fn source(site: &Site) -> PathBuf {
    site.file("source", 0)
}

fn output(site: &Site) -> PathBuf {
    site.file("output", 0)
}

struct Files<'a> {
    site: &'a Site<'a>,
    source: PathBuf,
    output: PathBuf,
}

/// Writes the source, which consists of random bytes, and makes it durable.
fn make_source(bytes: u64, input: &Path, site: &Site) -> Result<(), Error> {
    let made = Error::at(input, "create");
    let file = File::options().read(true).write(true).create_new(true).open(input).map_err(made)?;
    lay_out(input, &file, 0..bytes, site.stop)?;
    file.sync_all().map_err(Error::at(input, "fsync"))
}

impl Files<'_> {
    /// Runs a method once, and keeps its file.
    fn run(&self, way: &Way, size_bytes: u64) -> Result<OneRun, Error> {
        let mut effective = way.asked(size_bytes);
        let mut fallbacks = Vec::new();
        if let Some(wanted) = way.kind.cache() {
            let (found, fallback) = page_cache::prepare(&self.source, wanted, self.site.stop)?;
            effective.source_cache = Some(found);
            fallbacks.extend(fallback);
        }
        let mut run = match way.kind {
            Kind::Dd { direct } => self.dd(direct, size_bytes)?,
            kind => self.ours_or_theirs(kind, size_bytes, &mut effective, &mut fallbacks)?,
        };
        run.bytes = size_bytes;
        run.throughput_bytes_per_s = size_bytes as f64 / run.elapsed_s;
        run.iops = size_bytes.div_ceil(effective.bs_bytes.max(1)) as f64 / run.elapsed_s;
        Ok(OneRun { run, latencies: histogram(), effective, fallbacks })
    }

    fn dd(&self, direct: bool, size_bytes: u64) -> Result<Run, Error> {
        let task = self.task(&[], size_bytes);
        let (peak, run) = clocked(&self.site.timer()?, Usage::of_children, || {
            let peak = dd::write(&self.output, size_bytes, direct, self.site.stop)?;
            // dd does not flush the folder. A program that wants its file to survive flushes the
            // folder, too.
            if !direct {
                task.sync_name()?;
            }
            Ok(peak)
        })?;
        Ok(Run { max_rss_bytes: peak, ..run })
    }

    /// Runs a method within this process. The peak memory includes the input that is read before
    /// the clock starts, because a real program would hold that input, too. For `Writer`, which
    /// receives its input in pieces, the peak is not used.
    fn ours_or_theirs(
        &self,
        kind: Kind,
        size_bytes: u64,
        effective: &mut Settings,
        fallbacks: &mut Vec<Fallback>,
    ) -> Result<Run, Error> {
        let marked = usage::reset_peak_memory();
        let bytes =
            if kind.holds_input() { read_whole(&self.source, size_bytes)? } else { Vec::new() };
        let task = self.task(&bytes, size_bytes);
        let (done, mut run) = clocked(&self.site.timer()?, Usage::now, || match kind {
            Kind::Writer(bytes) => write::writer(&task, bytes).map(Some),
            Kind::CopyFile(_) => write::copy(&task).map(Some),
            kind => write::write(kind, &task).map(|()| None),
        })?;
        match marked {
            Ok(()) => {
                let given = if matches!(kind, Kind::Writer(_)) { bytes.len() as u64 } else { 0 };
                run.max_rss_bytes =
                    usage::peak_memory_bytes().map(|peak| peak.saturating_sub(given));
            }
            Err(error) => fallbacks.push(Fallback {
                wanted: "peak of memory".into(),
                got: "no figure".into(),
                because: format!("/proc/self/clear_refs: {error}"),
            }),
        }
        if let Some(done) = done {
            run.iodepth_reached = done.effective.iodepth_reached.max(1);
            fallbacks.extend(done.effective.fallbacks.iter().map(report::fallback));
            done.tell(effective);
        }
        Ok(run)
    }

    fn task<'a>(&'a self, bytes: &'a [u8], size_bytes: u64) -> Task<'a> {
        Task { input: &self.source, bytes, size_bytes, output: &self.output, stop: self.site.stop }
    }
}

/// Reads the first `bytes` bytes of a file into memory.
fn read_whole(path: &Path, bytes: u64) -> Result<Vec<u8>, Error> {
    let failed = Error::at(path, "read");
    let mut whole = Vec::with_capacity(bytes as usize);
    let file = File::open(path).map_err(failed)?;
    file.take(bytes).read_to_end(&mut whole).map_err(failed)?;
    Ok(whole)
}
