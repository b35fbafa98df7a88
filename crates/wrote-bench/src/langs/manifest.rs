//! A language's `manifest.toml`: its name, its toolchains and its variants.

mod checked;

use crate::child::shown;
use itertools::Itertools;
use serde::Deserialize;
use wrote_result::Error;

pub(crate) const FILE_NAME: &str = "manifest.toml";

const SHOWN_CHARS: usize = 60;

/// A manifest, as described by `langs/README.md`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The display name: `Go`.
    #[serde(deserialize_with = "checked::text")]
    pub name: String,
    /// How the program writes bytes, for a language without variants: `BufWriter, 8 KiB`.
    #[serde(default, deserialize_with = "checked::text")]
    pub way: String,
    /// How the program reads bytes, if different from `way`.
    #[serde(default, deserialize_with = "checked::text")]
    pub reads: String,
    /// How the program appends lines, if different from `way`.
    #[serde(default, deserialize_with = "checked::text")]
    pub lines: String,
    /// The command that installs the language, or a hint; one line.
    #[serde(deserialize_with = "checked::text")]
    pub install: String,
    /// The toolchains in order of preference. The first one whose programs are all installed is
    /// used.
    #[serde(rename = "toolchain", deserialize_with = "checked::some")]
    pub toolchains: Vec<Toolchain>,
    /// The variants: programs of this language that use different methods. Without variants, the
    /// language has one program.
    #[serde(default, rename = "variant", deserialize_with = "checked::variants")]
    pub variants: Vec<Variant>,
}

/// A compiler or interpreter. Its commands use the placeholders `{source}` (the folder of the
/// program's source), `{build}` (the folder of its build) and `{wrote}` (the program `wrote`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// The command that prints the version. It exits with 0 if the toolchain is installed.
    #[serde(deserialize_with = "checked::some")]
    pub version: Vec<String>,
    /// Other programs that the language requires, such as `java` in addition to `javac`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The command that builds the program; empty if there is no build.
    #[serde(default)]
    pub build: Vec<String>,
    /// The command that runs the program. The workload's arguments follow it.
    #[serde(deserialize_with = "checked::some")]
    pub run: Vec<String>,
}

/// One of the programs of a language that has several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// The ID, unique among all languages: `cpp-get-put`.
    #[serde(deserialize_with = "checked::id")]
    pub id: String,
    /// The display name: `C++ get/put`.
    #[serde(deserialize_with = "checked::text")]
    pub name: String,
    /// How the program writes bytes.
    #[serde(deserialize_with = "checked::text")]
    pub way: String,
    /// How the program reads bytes, if different from `way`.
    #[serde(default, deserialize_with = "checked::text")]
    pub reads: String,
    /// How the program appends lines, if different from `way`.
    #[serde(default, deserialize_with = "checked::text")]
    pub lines: String,
    /// The arguments that select this variant. They follow the workload's arguments.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// The tasks that the program supports, named as in a program's first argument; if empty, all
    /// tasks but `log`.
    #[serde(default, deserialize_with = "checked::tasks")]
    pub tasks: Vec<String>,
}

impl Manifest {
    /// Parses a manifest. Errors refer to it as `origin`.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`], one line long, with what is wrong and the line in the file.
    pub(crate) fn parse(text: &str, origin: &str) -> Result<Manifest, Error> {
        toml::from_str(text).map_err(|error| {
            // Some messages of the parser span several lines.
            let because = error.message().split_whitespace().join(" ");
            let start = error.span().map_or(0, |span| span.start);
            // The error for a key that is missing in the whole file has no line.
            let is_of_file = start == 0 && because.starts_with("missing");
            let place = place(text, start).filter(|_| !is_of_file).unwrap_or_default();
            Error::Usage(format!("{origin}: {place}{because}"))
        })
    }

    /// Returns the programs of the language; without variants, a single one named after the
    /// language.
    pub(super) fn programs(&self, id: &str) -> Vec<Variant> {
        if !self.variants.is_empty() {
            return self.variants.clone();
        }
        vec![Variant {
            id: id.into(),
            name: self.name.clone(),
            way: self.way.clone(),
            reads: self.reads.clone(),
            lines: self.lines.clone(),
            arguments: Vec::new(),
            tasks: Vec::new(),
        }]
    }
}

impl Toolchain {
    /// Returns the commands for the version, the build and the run. The build may be empty.
    pub(super) fn commands(&self) -> [&Vec<String>; 3] {
        [&self.version, &self.build, &self.run]
    }
}

/// Describes the line that contains the byte at `offset`: `line 3: build = "cc": `; `None` for a
/// blank line.
fn place(text: &str, offset: usize) -> Option<String> {
    let before = text.get(..offset)?;
    let line = text[before.rfind('\n').map_or(0, |end| end + 1)..].lines().next()?.trim();
    let number = before.matches('\n').count() + 1;
    (!line.is_empty()).then(|| format!("line {number}: {}: ", shown(line, SHOWN_CHARS)))
}

/// Returns whether a name consists of lower-case letters, digits and single hyphens: `cpp-get-put`.
pub(super) fn is_id(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.split('-').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        name = "Zig"
        install = "pip install ziglang"

        [[toolchain]]
        version = ["zig", "version"]
        build = ["zig", "build-exe", "{source}/main.zig", "-femit-bin={build}/program"]
        run = ["{build}/program"]

        [[toolchain]]
        version = ["python3", "-m", "ziglang", "version"]
        needs = ["cc"]
        run = ["/usr/bin/env", "{source}/program.sh"]

        [[variant]]
        id = "zig"
        name = "Zig"
        way = "Writer"

        [[variant]]
        id = "zig-2"
        name = "Zig, otherwise"
        way = "none"
        arguments = ["otherwise"]
        tasks = ["bytes-write", "bytes-read"]
    "#;

    /// Parses `WHOLE`, with `from` replaced by `to`, and returns the error.
    fn refused(from: &str, to: &str) -> String {
        assert!(WHOLE.contains(from), "{from}");
        let error = Manifest::parse(&WHOLE.replacen(from, to, 1), "zig/manifest.toml").unwrap_err();
        assert!(matches!(error, Error::Usage(_)));
        let text = error.to_string();
        assert!(!text.contains('\n'), "{text}");
        text.strip_prefix("zig/manifest.toml: ").expect("the origin").to_owned()
    }

    #[test]
    fn a_manifest_is_read_with_all_it_may_hold() {
        let manifest = Manifest::parse(WHOLE, "zig/manifest.toml").unwrap();
        assert_eq!(manifest.name, "Zig");
        assert_eq!(manifest.toolchains.len(), 2);
        assert_eq!(manifest.toolchains[1].needs, ["cc"]);
        assert!(manifest.toolchains[1].build.is_empty());
        assert_eq!(manifest.programs("zig"), manifest.variants);
        assert_eq!(manifest.variants[1].arguments, ["otherwise"]);
        assert_eq!(manifest.variants[1].tasks, ["bytes-write", "bytes-read"]);
    }

    #[test]
    fn a_language_without_variants_is_its_own_only_one() {
        let text = "name = 'A'\nway = 'w'\ninstall = 'i'\n\
                    [[toolchain]]\nversion = ['a']\nrun = ['a', '{source}/a']\n";
        let programs = Manifest::parse(text, "a").unwrap().programs("a-b");
        assert_eq!(programs.len(), 1);
        assert_eq!((&*programs[0].id, &*programs[0].name, &*programs[0].way), ("a-b", "A", "w"));
        assert!(programs[0].arguments.is_empty() && programs[0].tasks.is_empty());
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        for (from, to, told) in [
            (r#"name = "Zig""#, "name = Zig", "line 2: name = Zig: "),
            (
                r#"name = "Zig""#,
                "nome = 'x'",
                "line 2: nome = 'x': unknown field `nome`, expected ",
            ),
            ("needs =", "need =", "line 12: need = [\"cc\"]: unknown field `need`, expected "),
            ("\"Zig\"", "' '", "line 2: name = ' ': must not be empty"),
            ("pip install ziglang", "a\\nb", "line 3: install = \"a\\nb\": must be one line"),
            (r#"["zig", "version"]"#, "[]", "line 6: version = []: must not be empty"),
            (r#"["zig", "version"]"#, "'zig'", "line 6: version = 'zig': invalid type: string"),
            (r#"["{build}/program"]"#, "[]", "line 8: run = []: must not be empty"),
            (
                r#""bytes-read""#,
                "'bytes'",
                "\"bytes\" is not a task: there are bytes-write, bytes-read, ",
            ),
            (
                "zig-2",
                "Zig_2",
                "line 21: id = \"Zig_2\": must be small letters, digits and hyphens, such as \
                 my-language",
            ),
            ("zig-2", "zig", "two variants have the id \"zig\""),
        ] {
            let text = refused(from, to);
            assert!(text.contains(told), "{text:?} instead of {told:?}");
        }
    }

    #[test]
    fn a_missing_toolchain_is_named() {
        assert_eq!(refused(r#"install = "pip install ziglang""#, ""), "missing field `install`");
        assert!(
            refused(r#"version = ["zig", "version"]"#, "").ends_with("missing field `version`")
        );
        let none = Manifest::parse("name = 'a'\ninstall = 'b'\n", "m").unwrap_err().to_string();
        assert_eq!(none, "m: missing field `toolchain`");
        let empty = "toolchain = []\nname = 'a'\ninstall = 'b'\n";
        let empty = Manifest::parse(empty, "m").unwrap_err().to_string();
        assert_eq!(empty, "m: line 1: toolchain = []: must not be empty");
    }

    #[test]
    fn ids_are_of_small_letters_digits_and_hyphens() {
        assert!(["c", "cpp-get-put", "a1", "2"].into_iter().all(is_id));
        assert!(
            !["", "-", "a-", "a--b", "A", "c++", "a b", "é", "a/b", ".."].into_iter().any(is_id)
        );
    }
}
