//! A test of a scenario that is not in the registry, which is measured and reported like a
//! registered one.

use fixtures::{folder, names};
use std::time::Duration;
use wrote::Survives;
use wrote_bench::{
    Bench, Call, Common, Listed, OneRun, Plan, Request, RowSpec, Scenario, Site, Ticker, Turn,
    Work, clear,
};
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Evidence;
use wrote_jobs::histogram;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_report::{Content, Format, Screen};
use wrote_result::document::{Document, Finding, Row, Run, Settings, View};
use wrote_result::{Error, Stop};

const NAME: &str = "own";
const ROW: &str = "own/fs-write";

/// The settings of the scenario.
struct Own {
    bytes: usize,
}

impl Scenario for Own {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        let survives = Some(Survives::ProcessCrash);
        vec![Listed { scenario: NAME, row: ROW, way: "fs::write", survives }]
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        if !call.names(NAME, ROW) {
            return Ok(Vec::new());
        }
        let row = Row {
            name: ROW.into(),
            workload: NAME.into(),
            way: "fs::write".into(),
            view: Some(View::Files),
            survives: Some(Survives::ProcessCrash),
            ..Row::default()
        };
        let rows = vec![RowSpec {
            row,
            time: Duration::from_millis(1),
            bytes_max: self.bytes as u64,
            makes_files: true,
            ..RowSpec::default()
        }];
        let plan =
            Plan::new(NAME, "How fast is a file written?", rows, Files { bytes: self.bytes });
        Ok(vec![Plan { runs: call.common.runs.unwrap_or(5), ..plan }])
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let rows = evidence.rows.iter().filter(|row| row.name == ROW);
        let found = |row: &Row| {
            let text = format!("files of {} bytes", row.bytes_per_run);
            Finding::info("own-finding", text)
        };
        rows.map(found).collect()
    }
}

/// Performs the runs of the scenario.
struct Files {
    bytes: usize,
}

impl Files {
    fn settings(&self) -> Settings {
        let (rw, ioengine) = ("write".into(), "psync".into());
        Settings { rw, ioengine, size_bytes: self.bytes as u64, ..Settings::default() }
    }
}

impl Work for Files {
    fn run(&mut self, row: &Row, _: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (path, text) = (site.file("text", 0), vec![b'x'; self.bytes]);
        let ((), run) = clocked(&site.timer()?, Usage::now, || {
            std::fs::write(&path, &text).map_err(|error| Error::Failed(error.to_string()))
        })?;
        let bytes = self.bytes as u64;
        let throughput_bytes_per_s = bytes as f64 / run.elapsed_s;
        let run = Run { bytes, throughput_bytes_per_s, iops: 1.0 / run.elapsed_s, ..run };
        let (latencies, effective) = (histogram(), self.settings());
        let run = OneRun { run, latencies, effective, fallbacks: Vec::new() };
        Ok(run.row(row, self.settings()))
    }

    fn clear(&mut self, _: usize, site: &Site) -> Result<(), Error> {
        clear(&[site.file("text", 0)], site.scratch.path())
    }
}

/// Returns the result of the scenario in a folder that is empty again afterwards.
fn measured(only: &str) -> Result<Document, Error> {
    let folder = folder();
    let request = Request {
        only: vec![only.into()],
        common: Common { runs: Some(3), ..Common::default() },
        ..Request::new(folder.path().to_owned())
    };
    let document =
        Bench::new(&request).scenarios(&[&Own { bytes: 5000 }]).run(&Stop::new(), &mut ());
    assert_eq!(names(folder.path()), [""; 0]);
    document
}

#[test]
fn a_scenario_of_ones_own_is_measured_by_the_same_loop() {
    let document = measured(NAME).unwrap();
    let [scenario] = &document.scenarios[..] else { panic!("{document:?}") };
    assert_eq!((scenario.name.as_str(), scenario.rows.len()), (NAME, 1));
    let row = &scenario.rows[0];
    assert_eq!((row.name.as_str(), row.runs.len(), row.bytes_per_run), (ROW, 3, 5000));
    assert!(document.findings.iter().any(|finding| finding.id == "own-finding"));
    let refused = measured("owm").unwrap_err().to_string();
    assert!(refused.contains("did you mean 'own'?"), "{refused}");
}

#[test]
fn a_scenario_of_ones_own_is_written_in_every_format() {
    let content = Content::Result(Box::new(measured(ROW).unwrap()));
    let screen = Screen { width: 100, colour: false, unicode: false };
    for format in [Format::Table, Format::Json, Format::Csv, Format::Markdown] {
        let mut text = Vec::new();
        content.write(format, screen, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let is_for_people = matches!(format, Format::Table | Format::Markdown);
        let name = if is_for_people { "fs::write" } else { ROW };
        assert!(text.contains(name), "{format:?}: {text}");
        // A line of CSV describes a run, and contains no findings.
        assert!(
            format == Format::Csv || text.contains("files of 5000 bytes"),
            "{format:?}: {text}"
        );
    }
}
