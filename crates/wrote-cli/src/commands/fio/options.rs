//! fio's command line: its own options, and the options of jobs.

use crate::args::RunArgs;
use itertools::Itertools;
use std::ffi::OsString;
use std::path::PathBuf;
use wrote_jobs::fio as keys;
use wrote_jobs::fio_report::{Form, TERSE_VERSION, VERSION};
use wrote_result::Error;

/// The request of a command line.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// A text to print in place of a run.
    pub answer: Option<String>,
    pub run: RunArgs,
    pub forms: Vec<Form>,
    pub parse_only: bool,
    pub bandwidth_log: bool,
    pub idle_prof: bool,
    pub findings: bool,
    /// Where log files lie.
    pub aux_path: Option<PathBuf>,
    /// Block devices that may be written to.
    pub devices: Vec<PathBuf>,
}

/// fio's options about its own screen and memory, which have no counterpart here.
const WITHOUT_EFFECT: [&str; 9] = [
    "eta",
    "eta-interval",
    "eta-newline",
    "status-interval",
    "warnings-fatal",
    "max-jobs",
    "alloc-size",
    "inflate-log",
    "debug",
];
/// Options that have a value, which may be the next word.
const VALUED: [&str; 14] = [
    "output",
    "output-format",
    "terse-version",
    "section",
    "eta",
    "eta-interval",
    "eta-newline",
    "status-interval",
    "max-jobs",
    "alloc-size",
    "inflate-log",
    "debug",
    "aux-path",
    "allow-device",
];

/// The other options.
const SWITCHES: [&str; 12] = [
    "version",
    "help",
    "enghelp",
    "minimal",
    "append-terse",
    "readonly",
    "parse-only",
    "bandwidth-log",
    "idle-prof",
    "findings",
    "client",
    "server",
];

const HELP: &str = "\
fio's command line, as `wrote` takes it (docs/fio.md):
fio [options] [job options] <job file(s)>
  --output=FILE            Write output to FILE
  --output-format=FORMATS  terse, json, json+, normal; several with , between
  --minimal                terse; --append-terse adds it; --terse-version=2 to 5
  --section=NAME           Only the jobs of this name; several times
  --parse-only, --readonly, --bandwidth-log, --idle-prof=OPTION, --aux-path=DIR
  --eta, --status-interval and their like have no effect
  --findings               What `wrote` noticed, on standard error
  --allow-device=DEV       Write to a block device that holds nothing
  --version, --enghelp
";

/// Parses the words after `fio`.
pub(super) fn parse(words: &[OsString]) -> Result<Asked, Error> {
    let mut asked = Asked::default();
    let (mut terse_version, mut appends) = (TERSE_VERSION, false);
    asked.run.overwrite = true;
    asked.run.read_unwritten = true;
    asked.run.allow_overlap = true;
    asked.run.as_fio = true;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let Some(option) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            asked.run.jobs.push(word.into());
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (key, mut value) = match option.split_once('=') {
            Some((key, value)) => (whole(key), Some(value.to_owned())),
            None => (whole(option), None),
        };
        let mut next = |is_value: &dyn Fn(&str) -> bool| {
            let next = words.next_if(|next| is_value(&next.to_string_lossy()));
            next.map(|next| next.to_string_lossy().into_owned())
        };
        if value.is_none() && VALUED.contains(&key.as_str()) {
            value = next(&|_| true);
        }
        let given = || value.clone().ok_or_else(|| wrong(&key, "has no value"));
        match key.as_str() {
            "v" | "version" => asked.answer = Some(format!("{VERSION}\n")),
            "h" | "help" => asked.answer = Some(HELP.into()),
            "enghelp" | "i" => {
                let names: String = keys::engines().map(|name| format!("\t{name}\n")).collect();
                asked.answer = Some(format!("Available IO engines:\n{names}"));
            }
            "output" | "o" => asked.run.to.output = Some(given()?.into()),
            "output-format" | "F" => asked.forms = forms(&given()?)?,
            "minimal" | "m" => asked.forms = vec![Form::Terse(terse_version)],
            "append-terse" => appends = true,
            "terse-version" => {
                let version = given()?.parse().ok().filter(|version| (2..=5).contains(version));
                terse_version = version.ok_or_else(|| wrong(&key, "must be 2, 3, 4 or 5"))?;
            }
            "section" => asked.run.section.push(given()?),
            "readonly" | "r" => asked.run.readonly = true,
            "parse-only" => asked.parse_only = true,
            "bandwidth-log" => asked.bandwidth_log = true,
            "idle-prof" => asked.idle_prof = true,
            "findings" => asked.findings = true,
            "aux-path" => asked.aux_path = Some(given()?.into()),
            "client" | "server" | "remote-config" | "daemonize" => {
                return Err(wrong(&key, "is not taken: there are no clients and servers here"));
            }
            "allow-device" => asked.devices.push(given()?.into()),
            _ if WITHOUT_EFFECT.contains(&key.as_str()) => {}
            _ => {
                // As in getopt_long(3), the value may be the next word.
                if value.is_none() {
                    let is_switch = keys::is_switch(&key);
                    let is_flag = |word: &str| word == "0" || word == "1";
                    value = next(&|word: &str| match is_switch {
                        true => is_flag(word),
                        false => !word.starts_with('-') || word == "-",
                    });
                }
                let option = value.map_or(key.clone(), |value| format!("{key}={value}"));
                asked.run.options.push(option);
            }
        }
    }
    if appends {
        asked.forms.push(Form::Terse(terse_version));
    }
    for form in &mut asked.forms {
        if let Form::Terse(version) = form {
            *version = terse_version;
        }
    }
    if asked.forms.is_empty() || asked.forms == [Form::Terse(terse_version)] && appends {
        asked.forms.push(Form::Normal);
    }
    let is_empty = asked.run.jobs.is_empty() && asked.run.options.is_empty();
    if is_empty && asked.answer.is_none() {
        return Err(Error::Usage(format!("No job(s) defined\n\n{HELP}")));
    }
    Ok(asked)
}

/// Returns the option or the key that begins with these letters, if it is the only one, as
/// `getopt_long(3)` does.
fn whole(start: &str) -> String {
    let options = || VALUED.iter().chain(&WITHOUT_EFFECT).chain(&SWITCHES).copied();
    if start.len() < 2 || keys::is_key(start) || options().any(|option| option == start) {
        return start.to_owned();
    }
    let mut found = options().filter(|option| option.starts_with(start)).unique();
    let option = found.next().filter(|_| found.next().is_none());
    option.or_else(|| keys::completed(start)).unwrap_or(start).to_owned()
}

fn wrong(key: &str, what: &str) -> Error {
    Error::Usage(format!("--{key} {what}"))
}

fn forms(list: &str) -> Result<Vec<Form>, Error> {
    let form = |name: &str| match name {
        "terse" | "minimal" => Ok(Form::Terse(TERSE_VERSION)),
        "json" => Ok(Form::Json),
        "json+" => Ok(Form::JsonPlus),
        "normal" => Ok(Form::Normal),
        other => {
            Err(wrong("output-format", &format!("has no {other}: terse, json, json+, normal")))
        }
    };
    list.split(',').map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Asked {
        parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).expect("a good line")
    }

    #[test]
    fn options_of_jobs_and_of_the_program_stand_in_any_order() {
        for (line, options) in [
            ("--name=a --rw=write --size=1m", &["name=a", "rw=write", "size=1m"][..]),
            ("-name=a -rw=write", &["name=a", "rw=write"]),
            ("--name a --rw write --output x", &["name=a", "rw=write"]),
            ("--direct --name=a --time_base=1", &["direct", "name=a", "time_based=1"]),
            ("--direct 0 --eta never --name=a", &["direct=0", "name=a"]),
            ("--name=a --mini --output-fo=json", &["name=a"]),
        ] {
            assert_eq!(parsed(line).run.options, options, "{line}");
        }
        let asked = parsed("a.fio --section=x --minimal --terse-version=5 --runtime 5 b.fio");
        assert_eq!(asked.run.jobs, [PathBuf::from("a.fio"), PathBuf::from("b.fio")]);
        assert_eq!(asked.forms, [Form::Terse(5)]);
        assert_eq!(asked.run.section, ["x"]);
    }

    #[test]
    fn forms_are_listed_and_added() {
        assert_eq!(parsed("a.fio").forms, [Form::Normal]);
        assert_eq!(parsed("a.fio --append-terse").forms, [Form::Terse(3), Form::Normal]);
        assert_eq!(parsed("a.fio --output-format=json,normal").forms, [Form::Json, Form::Normal]);
        let error = parse(&["--output-format=xml".into()]).expect_err("no such form").to_string();
        assert_eq!(error, "--output-format has no xml: terse, json, json+, normal");
    }

    #[test]
    fn what_fio_does_without_asking_is_allowed() {
        // W7: a user who calls fio asks for it.
        let permissions = parsed("a.fio").run.permissions();
        assert!(permissions.overwrite && permissions.overlap && permissions.extend);
        assert!(!permissions.devices);
    }

    #[test]
    fn the_version_is_one_that_scripts_for_fio_take() {
        for word in ["-v", "--version"] {
            let answer = parsed(word).answer.expect("an answer");
            assert!(answer.starts_with("fio-3."), "{answer}");
        }
    }
}
