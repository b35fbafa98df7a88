//! Draws a call: its words, the damage to its input, closed descriptors, limits and hidden folders.

use lab::verbs::{Trouble, without_each};
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// Values that a person or a script may give. File names come from `world.rs`.
const VALUES: &str = "0|1|2|7|64|4096|-1|-0|+3|1e3|0x10|18446744073709551615|18446744073709551616\
    |99999999999999999999999999|1.5|nan|4k|4K|1M|64KiB|1GB|1EiB|0B|k|1 M|4k,4k|4k,|,|1ms\
    |100ms|1s|0s|1h|-1s|5%|100%|-5%|1e309%|5000|1MB/s|| |-|--|table|json|csv|markdown\
    |fio-json|no|always|everysec|auto|ladder|peak,rand|c,rust";
/// Values that must not reach a terminal or a parser unescaped.
const ODD: [&str; 8] = [
    "\u{1b}[31mred\u{1b}[0m",
    "line\nbreak",
    "tab\there",
    "\u{202e}desrever",
    "\u{fffd}",
    "ä€🦀",
    "%s%n",
    "a\\b\"c'd",
];
/// Paths in the world, both existing and missing. None of them leads out of the world, because
/// calls may run as root.
const PATHS: [&str; 14] = [
    ".", "..", "data", "empty", "folder", "log", "job.fio", "old.json", "new.json", "missing",
    "link", "dangling", "fifo", "-",
];
/// The inputs that may be damaged (`world.rs`).
pub const INPUTS: [&str; 3] = ["job.fio", "old.json", "log"];

/// Folders of the kernel, which a container may lack.
const HIDDEN: [&[&str]; 3] = [&["/sys"], &["/proc"], &["/sys", "/proc"]];

/// One execution of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub words: Vec<String>,
    /// The seed of the damage to one input, and the input's index in [`INPUTS`].
    pub damage: Option<(u64, usize)>,
    /// The descriptors that are closed.
    pub closed: Vec<u8>,
    /// A limit, as arguments for the shell's `ulimit`.
    pub limit: Option<&'static str>,
    /// The folders that appear empty to the call.
    pub hidden: &'static [&'static str],
    /// The seed of the bytes on standard input, which is otherwise empty.
    pub input: Option<u64>,
}

impl Call {
    /// Returns versions of the call, each of which lacks one part.
    pub fn smaller(&self) -> Vec<Call> {
        let words = without_each(&self.words);
        let mut smaller: Vec<_> = words.map(|words| Call { words, ..self.clone() }).collect();
        smaller.push(Call { damage: None, ..self.clone() });
        smaller.push(Call { closed: Vec::new(), ..self.clone() });
        smaller.push(Call { limit: None, ..self.clone() });
        smaller.push(Call { hidden: &[], ..self.clone() });
        smaller.push(Call { input: None, ..self.clone() });
        smaller.retain(|call| call != self);
        smaller
    }

    /// Returns whether the call may change existing files.
    pub fn may_change_files(&self) -> bool {
        let has = |word: &str| self.words.iter().any(|own| own == word);
        has("--force") || has("-f") || has("--overwrite") || has("run") || has("log")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(limit) = self.limit {
            write!(f, "ulimit {limit}; ")?;
        }
        if !self.hidden.is_empty() {
            write!(f, "# without {}: ", self.hidden.join(" and "))?;
        }
        write!(f, "wrote")?;
        self.words.iter().try_for_each(|word| write!(f, " {word:?}"))?;
        self.closed.iter().try_for_each(|number| write!(f, " {number}>&-"))?;
        if let Some((seed, input)) = self.damage {
            write!(f, "   # {} damaged by {seed}", INPUTS[input])?;
        }
        self.input.map_or(Ok(()), |seed| write!(f, "   # input of {seed}"))
    }
}

/// Draws calls of the command's verbs.
pub struct Drawer {
    verbs: Vec<Verb>,
    /// Whether folders can be hidden from a call.
    can_hide: bool,
}

impl Drawer {
    pub fn new(verbs: Vec<Verb>, can_hide: bool) -> Drawer {
        Drawer { verbs, can_hide }
    }

    /// Draws the call that belongs to a seed.
    pub fn draw(&self, seed: u64) -> Call {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let random = &mut random;
        let verb = self.verb(random);
        let mut words = verb.words.clone();
        for _ in 0..random.random_range(0..4) {
            let Some((name, takes_value)) = verb.options.choose(random) else { break };
            // The effects of `--help` and `--list` are known, so other options are drawn more
            // often.
            if name == "--help" && random.random_range(0..8) > 0 {
                continue;
            }
            words.push(name.clone());
            if *takes_value != (random.random_range(0..30) == 0) {
                words.push(value(random));
            }
        }
        for _ in 0..[0, 1, 1, 1, 2, 2, 3][random.random_range(0..7)] {
            words.push(path(random));
        }
        if random.random_range(0..40) == 0 {
            words.push(value(random));
        }
        let input = random.random_range(0..INPUTS.len());
        let damage = (random.random_range(0..2) == 0).then(|| (random.random(), input));
        let closed = match random.random_range(0..12) {
            0 => vec![random.random_range(0..3)],
            1 => vec![0, 1, 2],
            _ => Vec::new(),
        };
        let limits = ["-f 0", "-f 64", "-n 8", "-n 16", "-v 200000", "-l 0", "-u 1"];
        let limit =
            (random.random_range(0..8) == 0).then(|| *limits.choose(random).expect("not empty"));
        let input = (random.random_range(0..3) == 0).then(|| random.random());
        let is_hidden = random.random_range(0..4) == 0 && self.can_hide;
        let hidden = HIDDEN.choose(random).filter(|_| is_hidden).copied().unwrap_or_default();
        Call { words, damage, closed, limit, hidden, input }
    }

    /// Draws a verb. Verbs that measure are rare, because they take seconds.
    fn verb(&self, random: &mut Xoshiro256PlusPlus) -> &Verb {
        loop {
            let verb = self.verbs.choose(random).expect("the command has verbs");
            let is_slow = matches!(&*verb.words[0], "bench" | "langs");
            if !is_slow || random.random_range(0..10) == 0 {
                return verb;
            }
        }
    }
}

fn value(random: &mut Xoshiro256PlusPlus) -> String {
    match random.random_range(0..10) {
        0 => (*ODD.choose(random).expect("not empty")).to_owned(),
        1 => path(random),
        2 => random.random_range(0..10_000_u32).to_string(),
        _ => VALUES.split('|').choose(random).expect("not empty").to_owned(),
    }
}

fn path(random: &mut Xoshiro256PlusPlus) -> String {
    match random.random_range(0..12) {
        0 => (*ODD.choose(random).expect("not empty")).to_owned(),
        1 => "x".repeat(random.random_range(200..300)),
        _ => (*PATHS.choose(random).expect("not empty")).to_owned(),
    }
}

/// A verb and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verb {
    /// The words of the verb, such as `log` and `cat`.
    pub words: Vec<String>,
    /// The long names of the options, and whether a value follows each.
    pub options: Vec<(String, bool)>,
}

/// Returns all verbs of `program`.
pub fn verbs(program: &Path) -> Result<Vec<Verb>, Trouble> {
    let mut verbs = Vec::new();
    for verb in names(&help(program, &[])?) {
        let said = help(program, &[&verb])?;
        let inner = names(&said);
        if inner.is_empty() {
            verbs.push(Verb { words: vec![verb], options: options(&said) });
            continue;
        }
        for name in inner {
            let options = options(&help(program, &[&verb, &name])?);
            verbs.push(Verb { words: vec![verb.clone(), name], options });
        }
    }
    Ok(verbs)
}

fn help(program: &Path, words: &[&str]) -> Result<String, Trouble> {
    let output = Command::new(program).args(words).arg("--help").output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the names listed under `Commands:`.
fn names(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Lines that continue a description are indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns the options, which are declared in lines such as `  -o, --output <FILE>`.
fn options(help: &str) -> Vec<(String, bool)> {
    let declared = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let option = |line: &str| {
        let name = line.split_whitespace().find(|word| word.starts_with("--"))?;
        Some((name.trim_end_matches(',').to_owned(), line.contains('<')))
    };
    declared.filter_map(option).collect()
}

#[test]
fn names_and_options_are_read_from_a_help() {
    let help = "Usage: wrote <COMMAND>\n\nCommands:\n  doctor       Say what \
                holds\n               \
                write nothing\n  log          Read\n\nOptions:\n  -o, --output \
                <FILE>\n          \
                Write\n      --force\n";
    assert_eq!(names(help), ["doctor", "log"]);
    let expected = [("--output".to_owned(), true), ("--force".to_owned(), false)];
    assert_eq!(options(help), expected);
}
