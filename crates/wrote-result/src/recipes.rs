//! Code that survives a power loss, in each language: the chapters of `docs/safe-writes.md`.

use crate::document::Advice;

const TEXT: &str = include_str!("../safe-writes.md");

/// The language of advice that names no other language.
pub const RUST: &str = "rust";

/// The languages of advice, each with its name and the word that marks its code.
pub const LANGUAGES: [(&str, &str); 6] = [
    ("python", "python"),
    ("node", "js"),
    ("go", "go"),
    ("java", "java"),
    (RUST, RUST),
    ("c", "c"),
];

/// A chapter: one task, with the code for it in each language.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The title: `Replacing a file`.
    pub title: &'static str,
    /// The first paragraph, which describes what to do.
    action: &'static str,
    /// The second paragraph, which names the findings that the code avoids.
    pub findings: &'static str,
    text: &'static str,
}

impl Recipe {
    /// Returns the first paragraph as one line.
    pub fn action(&self) -> String {
        self.action.replace('\n', " ")
    }

    /// Returns the code that uses the standard library, if the language has any.
    pub fn code(&self, language: &str) -> Option<&'static str> {
        self.block(&format!("```{language}\n"))
    }

    /// Returns the code that uses the language's package of `wrote`, if there is one.
    pub fn with_wrote(&self, language: &str) -> Option<&'static str> {
        self.block(&format!("```{language} wrote\n"))
    }

    fn block(&self, fence: &str) -> Option<&'static str> {
        self.text.split_once(fence)?.1.split("```").next()
    }
}

/// Returns all chapters.
pub fn all() -> impl Iterator<Item = Recipe> {
    TEXT.split("\n## ").skip(1).map(|text| {
        let mut parts = text.split("\n\n");
        let [title, action, findings] = [(); 3].map(|()| parts.next().unwrap_or_default());
        Recipe { title, action, findings, text }
    })
}

/// Returns the code of a chapter in a language; empty if there is none.
pub fn code(title: &str, language: &str) -> String {
    let found = all().find(|recipe| recipe.title == title);
    found.and_then(|recipe| recipe.code(language)).unwrap_or_default().trim_end().into()
}

impl Advice {
    /// Replaces the Rust code with the code of the chapter in another language. Advice without a
    /// chapter keeps only its words.
    pub fn speak(&mut self, language: &'static str) {
        let recipe = all().find(|recipe| self.recipe.as_deref() == Some(recipe.title));
        let of = |code: Option<&str>| code.map(|code| code.trim_end().to_owned());
        self.with_wrote = of(recipe.and_then(|recipe| recipe.with_wrote(language)));
        self.code = of(recipe.and_then(|recipe| recipe.code(language))).unwrap_or_default();
        if let Some(recipe) = recipe.filter(|_| self.with_wrote.is_none()) {
            self.action = recipe.action();
        }
        self.language = Some(language.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_in_another_language_has_its_code_with_and_without_the_package() {
        let mut advice = Advice { recipe: Some("Replacing a file".into()), ..Advice::default() };
        advice.speak("python");
        assert!(advice.with_wrote.as_ref().unwrap().contains("wrote.write("), "{advice:?}");
        assert!(advice.code.contains("os.fsync(above)"), "{advice:?}");
        advice.speak("go");
        assert!(advice.with_wrote.is_none() && advice.code.contains("folder.Sync()"));
        let mut other = Advice { code: "let x = 1;".into(), ..Advice::default() };
        other.speak("java");
        assert!(other.code.is_empty());
    }

    #[test]
    fn every_chapter_has_code_in_every_language_that_fits_a_screen_of_80_columns() {
        for recipe in all() {
            for (language, word) in LANGUAGES {
                let code =
                    recipe.code(word).unwrap_or_else(|| panic!("{}: {language}", recipe.title));
                let codes = [Some(code), recipe.with_wrote(word)];
                let mut lines = codes.iter().flatten().flat_map(|code| code.lines());
                assert!(lines.all(|line| line.len() <= 68), "{language}: {code}");
            }
        }
    }
}
