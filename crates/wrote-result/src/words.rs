//! Enums whose variants are words in a URL, a file, a result or a metric. The two macros are in a
//! separate module because every other module uses them.

/// Declares an enum with a word for each variant. Variants are printed and parsed as these words.
///
/// ```
/// wrote_result::words! {
///     /// How to move.
///     pub enum Gait {
///         /// One foot is always on the ground.
///         Walk = "walk",
///         /// None may be.
///         Run = "run",
///     }
/// }
/// assert_eq!(Gait::Walk.as_str(), "walk");
/// assert_eq!("run".parse(), Ok(Gait::Run));
/// assert_eq!("fly".parse::<Gait>(), Err("is none of walk, run".to_owned()));
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$of:meta])*
        $vis:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$of_variant])* $variant,)+ }

        impl $name {
            /// All variants, in order.
            $vis const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// Returns the word of the variant.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<$name, String> {
                let known = $name::ALL.into_iter().find(|known| known.as_str() == word);
                known.ok_or_else(|| format!("is none of {}", [$($word),+].join(", ")))
            }
        }
    };
}

/// Implements printing and parsing of enums, with the words that they have in JSON.
macro_rules! word {
    ($($name:ident),+) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = serde::de::value::Error;

            fn from_str(word: &str) -> Result<$name, Self::Err> {
                let word = serde::de::IntoDeserializer::<Self::Err>::into_deserializer(word);
                serde::Deserialize::deserialize(word)
            }
        }
    )+};
}

pub(crate) use word;
