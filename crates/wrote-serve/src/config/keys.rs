//! The keys of the configuration, defined once for the file, for URLs and for the command line, in
//! the table `keys.toml`.

use super::{Config, Door, Listen, LogConfig};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;
use wrote::SyncPolicy;
use wrote_result::units;

/// The minimum similarity at which a known key is suggested.
const SIMILARITY_MIN: f64 = 0.6;

/// A key of the configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The name in the file or in URLs.
    pub name: String,
    #[serde(rename = "in")]
    sections: Vec<String>,
    /// The kind of value, as the help shows it (`SIZE`); `None` for a switch.
    pub value: Option<String>,
    range: Option<(u64, u64)>,
    /// The key's effect and its default.
    pub help: String,
    /// The command-line option without dashes. It applies to the server and its only log.
    pub flag: Option<String>,
}

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let table: BTreeMap<String, Vec<Key>> =
        toml::from_str(include_str!("keys.toml")).expect("a valid table");
    table.into_values().flatten().collect()
});

/// The part of the configuration that a key changes.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Server(&'a mut Config),
    Log(&'a mut LogConfig),
    Listener(&'a mut Listen),
}

/// A value as given in the file, a URL or the command line.
#[derive(Debug)]
pub(super) enum Written<'a> {
    Word(Cow<'a, str>),
    Number(u64),
    Switch(bool),
    /// A value of a kind that no key accepts.
    Other,
}

impl Key {
    /// Returns the keys that are also command-line options.
    pub fn flags() -> impl Iterator<Item = &'static Key> {
        KEYS.iter().filter(|key| key.flag.is_some())
    }

    /// Finds a key by name in a section. Otherwise, the error suggests a similar name. `others` are
    /// names that the section has in addition to those in the table.
    pub(super) fn find(
        section: &str,
        name: &str,
        others: &[&'static str],
    ) -> Result<&'static Key, String> {
        let keys = || KEYS.iter().filter(|key| key.sections.iter().any(|known| known == section));
        keys().find(|key| key.name == name).ok_or_else(|| {
            let known = others.iter().copied().chain(keys().map(|key| &*key.name));
            let known: Vec<&str> = known.collect();
            let alike = |known: &&str| strsim::normalized_damerau_levenshtein(name, known);
            let near = known.iter().copied();
            let near = near.max_by(|one, other| alike(one).total_cmp(&alike(other)));
            let near = near.filter(|near| alike(near) >= SIMILARITY_MIN);
            match near.or_else(|| known.iter().copied().find(|known| known.starts_with(name))) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("the options are {}", known.join(", ")),
            }
        })
    }

    /// Sets the key in a server's configuration, as its command-line option does.
    ///
    /// # Errors
    ///
    /// Why the key does not accept `word`.
    pub fn apply(&self, config: &mut Config, word: &str) -> Result<(), String> {
        let written = || Written::Word(word.into());
        if self.sections[0] != "log" {
            return self.set(Target::Server(config), written(), Path::new(""));
        }
        let set = |log| self.set(Target::Log(log), written(), Path::new(""));
        config.logs.iter_mut().try_for_each(set)
    }

    /// Sets the key. Relative paths start at `folder`. The error says what would be correct.
    pub(super) fn set(
        &self,
        target: Target<'_>,
        written: Written<'_>,
        folder: &Path,
    ) -> Result<(), String> {
        let given = Given { written, folder, range: self.range.unwrap_or((0, u64::MAX)) };
        match target {
            Target::Server(to) => self.set_of_server(to, &given),
            Target::Log(to) => self.set_of_log(to, &given),
            Target::Listener(to) => self.set_of_listener(to, &given),
        }
    }

    fn set_of_server(&self, to: &mut Config, given: &Given<'_>) -> Result<(), String> {
        let limits = &mut to.limits;
        match &*self.name {
            "metrics" => to.metrics = Some(given.text()?),
            "log_level" => {
                let level = given.text()?.parse();
                to.log_level = level.map_err(|_| "must be off, error, warn, info or debug")?;
            }
            "workers" => to.workers = given.count()?,
            "connections" => limits.connections = given.count()?,
            "message_bytes" => limits.message_bytes = given.bytes()?,
            "in_flight_bytes" => limits.in_flight_bytes = given.bytes()?,
            "unsent_bytes" => limits.unsent_bytes = given.bytes()?,
            "readers" => limits.readers = given.count()?,
            "first_byte" => limits.first_byte = given.time()?,
            "handshake" => limits.handshake = given.time()?,
            "message_time" => limits.message_time = given.time()?,
            "unread_time" => limits.unread_time = given.time()?,
            "free_bytes" => limits.free_bytes = given.bytes()?,
            "grace" => to.grace = given.time()?,
            "cert_file" => to.tls.get_or_insert_default().cert_file = given.path()?,
            "key_file" => to.tls.get_or_insert_default().key_file = given.path()?,
            "client_ca_file" => {
                to.tls.get_or_insert_default().client_ca_file = Some(given.path()?);
            }
            "token_file" => to.access.token_file = Some(given.path()?),
            "insecure" => to.access.is_insecure = given.switch()?,
            _ => unreachable!("{} is not a key for the server", self.name),
        }
        Ok(())
    }

    fn set_of_log(&self, to: &mut LogConfig, given: &Given<'_>) -> Result<(), String> {
        let options = to.options.clone();
        if to.is_file && !matches!(&*self.name, "sync" | "buffer_bytes") {
            return Err("is not allowed with --file: a file of lines has no segments".into());
        }
        match &*self.name {
            "folder" => to.folder = given.path()?,
            "sync" => to.sync = given.sync()?,
            "segment_bytes" => to.segment_bytes = Some(given.bytes()?),
            "segment_age" => to.options = options.segment_age(given.time()?),
            "retain_bytes" => to.retain_bytes = Some(given.bytes()?),
            "retain_age" => to.retain_age = Some(given.time()?),
            "buffers" => to.options = options.buffers(given.count()?),
            "buffer_bytes" => to.buffer_bytes = Some(given.bytes()?),
            "store" => to.store = Some(given.text()?),
            _ => unreachable!("{} is not a key for logs", self.name),
        }
        Ok(())
    }

    fn set_of_listener(&self, to: &mut Listen, given: &Given<'_>) -> Result<(), String> {
        let (is_framed, answers) = (matches!(to.door, Door::Frames(_)), to.answers().is_some());
        match &*self.name {
            "frame" if is_framed => to.door = Door::Frames(given.word()?),
            "ack" if answers => to.ack = given.word()?,
            "oversize" if is_framed || to.door == Door::Relp => to.oversize = given.word()?,
            "stamp" if to.door != Door::Datagrams => to.stamp = given.word()?,
            "mode" if to.socket.path().is_some() => to.mode = Some(given.mode()?),
            name => return Err(format!("is not allowed for {}, which has no {name}", to.scheme())),
        }
        Ok(())
    }
}

/// A value, and the range that is allowed.
#[derive(Debug)]
struct Given<'a> {
    written: Written<'a>,
    folder: &'a Path,
    range: (u64, u64),
}

impl Given<'_> {
    fn text(&self) -> Result<String, String> {
        match &self.written {
            Written::Word(text) if text.is_empty() => Err("is empty".into()),
            Written::Word(text) => Ok(text.to_string()),
            _ => Err("must be in quotes".into()),
        }
    }

    fn path(&self) -> Result<PathBuf, String> {
        self.text().map(|path| self.folder.join(path))
    }

    fn word<T: FromStr<Err = String>>(&self) -> Result<T, String> {
        self.text()?.parse()
    }

    fn switch(&self) -> Result<bool, String> {
        match &self.written {
            Written::Switch(is_on) => Ok(*is_on),
            Written::Word(word) if word == "yes" => Ok(true),
            _ => Err("must be true or false".into()),
        }
    }

    /// Returns the value as a number of bytes; it may be a size with a unit.
    fn bytes<T: TryFrom<u64>>(&self) -> Result<T, String> {
        let bytes = match &self.written {
            Written::Number(bytes) => *bytes,
            Written::Word(text) => units::parse_size(text)?,
            _ => return Err("must be a size such as 65536, \"64KiB\" or \"10GB\"".into()),
        };
        let [least, most] = [self.range.0, self.range.1].map(units::block_size);
        self.fitting(bytes).ok_or_else(|| format!("must be from {least} to {most}"))
    }

    fn count<T: TryFrom<u64>>(&self) -> Result<T, String> {
        let number = match &self.written {
            Written::Number(number) => Some(*number),
            Written::Word(word) => word.parse().ok(),
            _ => None,
        };
        let (least, most) = self.range;
        let number = number.filter(|number| *number >= least);
        let number = number.ok_or_else(|| format!("must be a whole number, {least} or more"))?;
        self.fitting(number).ok_or_else(|| format!("must be at most {most}"))
    }

    fn fitting<T: TryFrom<u64>>(&self, number: u64) -> Option<T> {
        let (least, most) = self.range;
        (least..=most).contains(&number).then(|| number.try_into().ok())?
    }

    fn time(&self) -> Result<Duration, String> {
        match &self.written {
            Written::Word(text) => units::parse_duration(text),
            _ => Err("must be a time such as \"500ms\", \"30s\" or \"2m\"".into()),
        }
    }

    fn sync(&self) -> Result<SyncPolicy, String> {
        match self.text()?.as_str() {
            "always" => Ok(SyncPolicy::Always),
            "everysec" => Ok(SyncPolicy::EverySec),
            "no" => Ok(SyncPolicy::No),
            text => units::parse_duration(text)
                .map(SyncPolicy::Interval)
                .map_err(|_| "must be always, everysec, no, or a time such as 100ms".into()),
        }
    }

    /// Returns the value as a file mode.
    fn mode(&self) -> Result<u32, String> {
        let word = self.text()?;
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let mode = u32::from_str_radix(&word, 8).ok().filter(|mode| is_number && *mode <= 0o777);
        mode.ok_or_else(|| "must be an octal mode from 0 to 777".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented example of a configuration.
    const EXAMPLE: &str = include_str!("../../../../docs/serve.toml");

    #[test]
    fn every_key_stands_in_the_documented_example_with_its_help() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let comments = words(&EXAMPLE.replace("\n# ", " "));
        for key in KEYS.iter().filter(|key| key.sections != ["url"]) {
            let line =
                |line: &str| line.trim_start_matches("# ").starts_with(&format!("{} = ", key.name));
            assert!(EXAMPLE.lines().any(line), "{}", key.name);
            assert!(comments.contains(&words(&key.help)), "{}: {}", key.name, key.help);
        }
    }

    #[test]
    fn every_key_can_be_set_in_its_sections_and_no_other_value_is_taken() {
        let mut config = Config::of_log(Path::new("log"), Vec::new());
        for (key, section) in
            KEYS.iter().flat_map(|key| key.sections.iter().map(move |at| (key, at)))
        {
            let mut listen: Listen = "unix:///socket".parse().unwrap();
            let mut log = config.logs[0].clone();
            let target = match section.as_str() {
                "file" | "limits" | "tls" | "access" => Target::Server(&mut config),
                "log" => Target::Log(&mut log),
                "url" => Target::Listener(&mut listen),
                other => panic!("{other} is no section"),
            };
            assert!(key.set(target, Written::Other, Path::new("")).is_err(), "{}", key.name);
        }
    }
}
