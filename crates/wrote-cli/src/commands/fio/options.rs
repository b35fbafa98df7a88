//! fio's command line: the options of fio itself, and the options of jobs.

use crate::args::{RunArgs, key_of, with_value};
use std::ffi::OsString;
use std::path::PathBuf;
use wrote_jobs::fio as keys;
use wrote_jobs::fio_report::{Form, VERSION};
use wrote_result::Error;

/// The request of a command line.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// The text to print instead of running jobs.
    pub answer: Option<String>,
    pub run: RunArgs,
    pub forms: Vec<Form>,
    /// Whether JSON lists every bucket of the latencies (`json+`).
    pub bins: bool,
    pub terse_version: u32,
    pub parse_only: bool,
    pub bandwidth_log: bool,
    pub idle_prof: bool,
    pub findings: bool,
    /// The folder for the log files.
    pub aux_path: Option<PathBuf>,
    /// The block devices that may be written to.
    pub devices: Vec<PathBuf>,
}

/// fio's default version of the terse format.
const TERSE_VERSION: u32 = 3;

const HELP: &str = include_str!("help.txt");

/// The options that take a value, which may be the next word.
const VALUED: &str = "output output-format terse-version section eta eta-interval eta-newline \
                      status-interval max-jobs alloc-size inflate-log debug aux-path allow-device";

/// The options that take no value.
const SWITCHES: &str = "version help enghelp minimal append-terse readonly parse-only warnings-fatal \
                        bandwidth-log idle-prof findings client server";

/// fio's options that are refused, with the reasons.
const REFUSED: [(&str, &str); 3] = [
    ("client server remote-config daemonize", "there are no clients and servers here"),
    ("trigger trigger-file trigger-timeout trigger-remote", "commands are not run"),
    ("showcmd cmdhelp crctest cpuclock-test merge-blktrace-only profile", "it is about fio itself"),
];

/// Parses the words after `fio`.
pub(super) fn parse(words: &[OsString]) -> Result<Asked, Error> {
    let mut asked = Asked { terse_version: TERSE_VERSION, ..Asked::default() };
    let mut appends = false;
    asked.run.overwrite = true;
    asked.run.read_unwritten = true;
    asked.run.allow_overlap = true;
    asked.run.as_fio = true;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if word == "-" || !word.to_string_lossy().starts_with('-') {
            asked.run.jobs.push(word.into());
            continue;
        }
        let (key, value) = key_of(word);
        let key = whole(&key);
        let of_next = || words.next().map(|next| next.to_string_lossy().into_owned());
        let value = if is_in(VALUED, &key) { value.or_else(of_next) } else { value };
        let given = || value.clone().ok_or_else(|| wrong(&key, "has no value"));
        let refused = REFUSED.iter().find(|(options, _)| is_in(options, &key));
        match key.as_str() {
            "v" | "version" => asked.answer = Some(format!("{VERSION}\n")),
            "h" | "help" => asked.answer = Some(HELP.into()),
            "enghelp" | "i" => {
                let names: String = keys::engines().map(|name| format!("\t{name}\n")).collect();
                asked.answer = Some(format!("Available IO engines:\n{names}"));
            }
            "output" | "o" => asked.run.to.output = Some(given()?.into()),
            "output-format" | "F" => (asked.forms, asked.bins) = forms(&given()?)?,
            "minimal" | "m" => asked.forms = vec![Form::Terse],
            "append-terse" => appends = true,
            "terse-version" => {
                let version = given()?.parse().ok().filter(|version| (2..=5).contains(version));
                asked.terse_version = version.ok_or_else(|| wrong(&key, "must be 2, 3, 4 or 5"))?;
            }
            "section" => asked.run.section.push(given()?),
            "readonly" | "r" => asked.run.readonly = true,
            "parse-only" => asked.parse_only = true,
            "bandwidth-log" => asked.bandwidth_log = true,
            "idle-prof" => asked.idle_prof = true,
            "findings" => asked.findings = true,
            "aux-path" => asked.aux_path = Some(given()?.into()),
            "allow-device" => asked.devices.push(given()?.into()),
            _ if keys::has_no_effect(&key) => {}
            _ => match refused {
                Some((_, why)) => return Err(wrong(&key, &format!("is not taken: {why}"))),
                None => asked.run.options.push(with_value(&key, value, &mut words)),
            },
        }
    }
    if asked.forms.is_empty() {
        asked.forms.push(Form::Normal);
    }
    asked.forms.extend(appends.then_some(Form::Terse));
    let is_empty = asked.run.jobs.is_empty() && asked.run.options.is_empty();
    if is_empty && asked.answer.is_none() {
        return Err(Error::Usage(format!("No job(s) defined\n\n{HELP}")));
    }
    Ok(asked)
}

fn is_in(options: &str, option: &str) -> bool {
    options.split_whitespace().any(|known| known == option)
}

/// Returns the only option or key that begins with `start`, as `getopt_long(3)` completes it, or
/// else `start` itself.
fn whole(start: &str) -> String {
    let options = || VALUED.split_whitespace().chain(SWITCHES.split_whitespace());
    if start.len() < 2 || keys::is_key(start) || options().any(|option| option == start) {
        return start.to_owned();
    }
    let mut found = options().filter(|option| option.starts_with(start));
    let option = found.next().filter(|_| found.next().is_none());
    option.or_else(|| keys::completed(start)).unwrap_or(start).to_owned()
}

fn wrong(key: &str, what: &str) -> Error {
    Error::Usage(format!("--{key} {what}"))
}

/// Returns the formats in a list, without duplicates, and whether its JSON lists every bucket.
fn forms(list: &str) -> Result<(Vec<Form>, bool), Error> {
    let form = |name: &str| match name {
        "terse" | "minimal" | "csv" => Ok(Form::Terse),
        "json" | "json+" => Ok(Form::Json),
        "normal" => Ok(Form::Normal),
        other => {
            Err(wrong("output-format", &format!("has no {other}: terse, json, json+, normal")))
        }
    };
    let names = || list.split(',');
    Ok((names().map(form).collect::<Result<_, _>>()?, names().any(|name| name == "json+")))
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
        assert_eq!((asked.forms, asked.terse_version), (vec![Form::Terse], 5));
        assert_eq!(asked.run.section, ["x"]);
    }

    #[test]
    fn forms_are_listed_and_added() {
        assert_eq!(parsed("a.fio").forms, [Form::Normal]);
        assert_eq!(parsed("a.fio --append-terse").forms, [Form::Normal, Form::Terse]);
        assert_eq!(parsed("a.fio --output-format=json,normal").forms, [Form::Json, Form::Normal]);
        let error = parse(&["--output-format=xml".into()]).expect_err("no such form").to_string();
        assert_eq!(error, "--output-format has no xml: terse, json, json+, normal");
    }

    #[test]
    fn what_fio_does_without_asking_is_allowed() {
        // W7: calling fio requests these permissions.
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
