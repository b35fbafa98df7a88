//! The texts of the checks: `texts.toml`, filled with the values of this machine, and commands that
//! are ready to be pasted.

use super::world::World;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::LazyLock;
use wrote_result::doctor::{Change, Check, State};
use wrote_result::quoted;

static TEXTS: LazyLock<BTreeMap<String, Texts>> =
    LazyLock::new(|| toml::from_str(include_str!("texts.toml")).expect("texts.toml is valid"));

/// The texts of one check. [`Outcome`] explains the keys.
#[derive(Deserialize)]
struct Texts {
    costs: Option<String>,
    measured: Option<String>,
    risk: Option<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(flatten)]
    outcomes: BTreeMap<String, Outcome>,
}

/// The texts of one outcome of a check. The comment at the start of `texts.toml` explains the keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    #[serde(default)]
    state: State,
    text: String,
    because: Option<String>,
    costs: Option<String>,
    measured: Option<String>,
    how: Option<String>,
    run: Option<String>,
    remount: Option<String>,
    fstab: Option<String>,
    sysctl: Option<String>,
    queue: Option<String>,
    risk: Option<String>,
    lasting: Option<String>,
    sources: Option<Vec<String>>,
}

/// Values, with their names in a text.
pub(super) type Values<'a> = [(&'a str, &'a dyn Display)];

/// Returns the check with the texts of `key` ("id.outcome"), filled with these values, and without
/// evidence.
pub(super) fn say(world: &World, key: &str, values: &Values) -> Check {
    let known = key.split_once('.').and_then(|(id, outcome)| {
        let texts = TEXTS.get(id)?;
        Some((texts, texts.outcomes.get(outcome)?))
    });
    let (texts, outcome) = known.unwrap_or_else(|| panic!("texts.toml has no {key}"));
    let fill = |text: &String| filled(text, values);
    let change = outcome.change(world, values);
    let is_plain = outcome.state == State::Fine && change.is_none();
    let of_check = |of: &'static Option<String>| of.as_ref().filter(|_| !is_plain);
    let costs = outcome.costs.as_ref().or(of_check(&texts.costs)).map(fill);
    let measured = outcome.measured.as_ref().or(of_check(&texts.measured));
    let measure = measured.map(|scenarios| measure(world, scenarios));
    let risk = outcome.risk.as_ref().or(of_check(&texts.risk)).map(fill);
    let risk = risk.unwrap_or_default();
    Check {
        state: outcome.state,
        text: fill(&outcome.text),
        because: outcome.because.as_ref().map(fill),
        costs: with_measure(costs, measure),
        change: change.map(|change| Change { risk, ..change }),
        sources: outcome.sources.as_ref().unwrap_or(&texts.sources).clone(),
        ..Check::default()
    }
}

/// Returns the suggestion to run these scenarios of `wrote bench`, which measure the cost on this
/// machine.
fn measure(world: &World, scenarios: &str) -> String {
    let folder = match &world.target.path {
        path if world.file.is_folder => quoted(&[path.to_string_lossy()]),
        path if world.file.is_file => {
            quoted(&[path.parent().unwrap_or(Path::new("/")).to_string_lossy()])
        }
        _ => "FOLDER".into(),
    };
    format!(
        "The cost here was not measured: run wrote bench {folder} --only {scenarios} before and \
         after the change."
    )
}
impl Outcome {
    /// Returns the suggested change, without its risk; `None` if the outcome suggests none.
    fn change(&self, world: &World, values: &Values) -> Option<Change> {
        let fill = |text: &String| filled(text, values);
        let setting = |text: &String| {
            let (name, value) = text.split_once('=').expect("a setting is name=value");
            (name.to_owned(), filled(value, values))
        };
        let point = || quoted(&[world.target.mount_point.to_string_lossy()]);
        let (how, command, lasting) = if let Some(option) = self.remount.as_ref().map(fill) {
            let lasting = format!("the options of {} in /etc/fstab", point());
            (None, Some(format!("mount -o remount,{option} {}", point())), Some(lasting))
        } else if let Some(option) = &self.fstab {
            let how = format!(
                "take {option} out of the options of {} in /etc/fstab, unmount it and mount it \
                 again: a remount does not change it",
                point()
            );
            (Some(how), None, None)
        } else if let Some((name, value)) = self.sysctl.as_ref().map(setting) {
            // sysctl(8)
            let lasting = format!("in /etc/sysctl.d/60-disk.conf: {name} = {value}");
            (None, Some(format!("sysctl -w {name}={value}")), Some(lasting))
        } else if let Some((file, value)) = self.queue.as_ref().map(setting) {
            let disk = filled("{disk}", values);
            // The rule of udev(7) sets the value whenever the disk appears.
            let lasting = format!(
                "in /etc/udev/rules.d/60-disk.rules: ACTION==\"add|change\", KERNEL==\"{disk}\", \
                 ATTR{{queue/{file}}}=\"{value}\""
            );
            (None, Some(set_queue(&disk, &file, &value)), Some(lasting))
        } else {
            let (how, run) = (self.how.as_ref().map(fill), self.run.as_ref().map(fill));
            (how, run, self.lasting.as_ref().map(fill))
        };
        let commands = Vec::from_iter(command);
        (how.is_some() || !commands.is_empty()).then(|| Change {
            how,
            commands,
            lasting,
            risk: String::new(),
        })
    }
}

/// Replaces `{measure}` in the costs with how to measure them, or appends that to the costs.
fn with_measure(costs: Option<String>, measure: Option<String>) -> Option<String> {
    match (costs, measure) {
        (Some(costs), Some(measure)) if costs.contains("{measure}") => {
            Some(costs.replace("{measure}", &measure))
        }
        (Some(costs), Some(measure)) => Some(format!("{costs} {measure}")),
        (costs, measure) => costs.or(measure),
    }
}

/// Returns `text` with each known word in braces replaced by its value. Unknown words are left as
/// they are.
fn filled(text: &str, values: &Values) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = part.split_once('}').and_then(|(word, rest)| {
            let (_, value) = values.iter().find(|(name, _)| *name == word)?;
            Some(format!("{value}{rest}"))
        });
        filled += &value.unwrap_or_else(|| format!("{{{part}"));
    }
    filled
}

pub(super) fn set_queue(disk: &str, file: &str, value: &str) -> String {
    let value = if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
    format!("echo {value} > {}", quoted(&[format!("/sys/block/{disk}/queue/{file}")]))
}

#[cfg(test)]
mod texts_tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Returns the keys used in the sources of the checks: every string "id.outcome" with a known
    /// id.
    fn keys_in_sources() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/machine/doctor");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let sources = files.filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
        let source: String = sources.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let is_key = |word: &&str| {
            let id = word.split_once('.').map(|(id, _)| id);
            id.is_some_and(|id| TEXTS.contains_key(id)) && !word.contains(['/', ' '])
        };
        source.split('"').filter(is_key).map(str::to_owned).collect()
    }

    #[test]
    fn every_text_is_said_and_every_said_text_is_there() {
        let of_check = |(id, texts): (&String, &Texts)| -> Vec<String> {
            texts.outcomes.keys().map(|outcome| format!("{id}.{outcome}")).collect()
        };
        let keys: BTreeSet<String> = TEXTS.iter().flat_map(of_check).collect();
        assert_eq!(keys_in_sources(), keys);
    }

    #[test]
    fn every_outcome_that_is_not_fine_says_what_its_state_asks_for() {
        let (_fake, world) = crate::machine::doctor::fake::mounted("ext4", &[]);
        for (id, texts) in TEXTS.iter() {
            for (name, outcome) in &texts.outcomes {
                let check = say(&world, &format!("{id}.{name}"), &[]);
                let is_urgent = matches!(outcome.state, State::Advice | State::Risk);
                let is_whole = check.costs.is_some() && check.change.is_some();
                assert!(!is_urgent || is_whole && !check.sources.is_empty(), "{id}.{name}");
                let is_unknown = outcome.state == State::Unknown;
                assert_eq!(check.because.is_some(), is_unknown, "{id}.{name}");
                let has_risk = check.change.is_none_or(|change| !change.risk.is_empty());
                assert!(has_risk, "{id}.{name}");
            }
        }
    }

    #[test]
    fn values_replace_their_words_and_are_not_filled_themselves() {
        let path = "/mnt/{name}";
        let text = filled("{name} at {path}: {unknown}, {", &[("name", &1), ("path", &path)]);
        assert_eq!(text, "1 at /mnt/{name}: {unknown}, {");
    }
}

#[cfg(test)]
mod shell_tests {
    use super::*;

    #[test]
    fn a_value_of_two_words_is_written_as_one() {
        assert_eq!(
            set_queue("sda", "write_cache", "write back"),
            "echo \"write back\" > /sys/block/sda/queue/write_cache"
        );
        assert_eq!(set_queue("c!d", "nomerges", "0"), "echo 0 > '/sys/block/c!d/queue/nomerges'");
    }
}
