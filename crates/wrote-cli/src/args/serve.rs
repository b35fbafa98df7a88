//! The arguments of `wrote serve`.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use std::path::{Path, PathBuf};
use wrote_serve::{Config, Key, Listen};

/// The arguments of `wrote serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// The folder of the log; created if it does not exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath,
        required_unless_present_any = ["config", "file"], conflicts_with = "config")]
    pub folder: Option<PathBuf>,

    /// Append lines to this plain file instead of a log; SIGHUP reopens it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["config", "folder"])]
    pub file: Option<PathBuf>,

    /// Where to listen and what to speak: tcp://127.0.0.1:5140, unix:///run/events.sock, relp://,
    /// http://, resp://; may be repeated
    #[arg(long, value_name = "URL", required_unless_present = "config", conflicts_with = "config")]
    pub listen: Vec<Listen>,

    /// Read logs, listeners and limits from a file (TOML)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Check the configuration, and end
    #[arg(long)]
    pub check: bool,

    /// The keys of the configuration that were given as options.
    #[command(flatten)]
    pub settings: Settings,
}

/// The options that stand for keys of the configuration file, with their values.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<(&'static Key, String)>);

impl Settings {
    /// Sets the keys that were given as options.
    pub fn apply(&self, config: &mut Config) -> Result<(), String> {
        let named = |key: &Key, because| {
            let flag = key.flag.as_deref().unwrap_or_default();
            format!("--{flag}: {because}")
        };
        let mut all = self.0.iter();
        all.try_for_each(|(key, word)| key.apply(config, word).map_err(|why| named(key, why)))
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        Key::flags().fold(command, |command, key| {
            let arg = Arg::new(&*key.name).long(key.flag.as_deref()).help(&*key.help);
            let arg = arg.conflicts_with("config");
            command.arg(match key.value.as_deref() {
                None => arg.action(ArgAction::SetTrue),
                Some(value) => {
                    let hint = if value == "FILE" { ValueHint::FilePath } else { ValueHint::Other };
                    let arg = arg.value_name(value).value_hint(hint);
                    arg.allow_hyphen_values(true).value_parser(move |word: &str| check(key, word))
                }
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Settings::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Settings, Error> {
        let given = |key: &'static Key| match key.value {
            None => matches.get_flag(&key.name).then(|| (key, "yes".to_owned())),
            Some(_) => matches.get_one::<String>(&key.name).map(|word| (key, word.clone())),
        };
        Ok(Settings(Key::flags().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Settings::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the value, or an error if the key cannot have this value.
fn check(key: &Key, word: &str) -> Result<String, String> {
    let mut config = Config::of_log(Path::new("log"), Vec::new());
    key.apply(&mut config, word).map(|()| word.to_owned())
}
