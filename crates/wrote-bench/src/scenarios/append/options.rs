//! The settings of the scenario, with their limits and their help.

use super::message::{BYTES_MAX, BYTES_MIN, MESSAGES_MAX, PRODUCERS_MAX, Sizes};
use wrote_result::Error;
#[cfg(feature = "cli")]
use wrote_result::units;

/// The settings of the scenario `append`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Append {
    /// Messages of one run of append, from 1 to 1000000000; by default as many as fit in 0.3 s
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", value_parser = units::parse_count::<{ MESSAGES_MAX as u32 }>, allow_hyphen_values = true))]
    pub messages: Option<u32>,

    /// Lengths of the messages of append: 300..2000, 64, 1K..4K [default: 300..2000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "MIN..MAX", value_parser = sizes, allow_hyphen_values = true))]
    pub message_size: Option<Sizes>,

    /// Producers that append to a log at once, each number in rows of its own [default: 4,64]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N,..", value_delimiter = ',', value_parser = units::parse_count::<PRODUCERS_MAX>, allow_hyphen_values = true))]
    pub producers: Vec<u32>,

    /// Run producers as blocking threads or as tokio tasks
    #[cfg_attr(feature = "cli", arg(long, value_name = "WHAT", value_enum, default_value_t = AppendAs::Threads))]
    pub append_as: AppendAs,
}

/// The kind of a log's producers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum AppendAs {
    /// Threads that block
    #[default]
    Threads,
    /// Tasks of tokio's runtime of several threads
    Tasks,
}

impl AppendAs {
    /// The word in the result.
    pub fn as_str(self) -> &'static str {
        match self {
            AppendAs::Threads => "threads",
            AppendAs::Tasks => "tasks",
        }
    }
}

impl Append {
    /// The producers of each row of a log, in rising order.
    pub(super) fn checked_producers(&self) -> Result<Vec<u32>, Error> {
        let mut producers = self.producers.clone();
        if producers.is_empty() {
            producers = super::plan::PRODUCERS.to_vec();
        }
        producers.sort_unstable();
        producers.dedup();
        match producers.iter().find(|producers| !(1..=PRODUCERS_MAX).contains(*producers)) {
            Some(bad) => {
                Err(Error::Usage(format!("--producers: {bad} is not from 1 to {PRODUCERS_MAX}")))
            }
            None => Ok(producers),
        }
    }

    pub(super) fn checked_messages(&self) -> Result<Option<u64>, Error> {
        match self.messages.map(u64::from) {
            Some(bad) if !(1..=MESSAGES_MAX).contains(&bad) => {
                Err(Error::Usage(format!("--messages: {bad} is not from 1 to {MESSAGES_MAX}")))
            }
            messages => Ok(messages),
        }
    }

    pub(super) fn checked_sizes(&self) -> Result<Sizes, Error> {
        let sizes = self.message_size.unwrap_or(super::plan::SIZES);
        let Sizes { min_bytes, max_bytes } = sizes;
        if min_bytes < BYTES_MIN || max_bytes > BYTES_MAX || min_bytes > max_bytes {
            return Err(Error::Usage(format!(
                "--message-size: {min_bytes}..{max_bytes}: append needs messages of {BYTES_MIN} to \
                 {BYTES_MAX} bytes, the shortest first"
            )));
        }
        Ok(sizes)
    }
}

/// Parses `MIN..MAX`, or one size for all messages.
#[cfg(feature = "cli")]
fn sizes(text: &str) -> Result<Sizes, String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let range = BYTES_MIN..=BYTES_MAX;
    let bytes = |text: &str| {
        let bytes = units::parse_block_size(text)?;
        u32::try_from(bytes).ok().filter(|bytes| range.contains(bytes)).ok_or_else(|| {
            format!("{text:?}: a message has {} to {} bytes", range.start(), range.end())
        })
    };
    let sizes = Sizes { min_bytes: bytes(min)?, max_bytes: bytes(max)? };
    if sizes.min_bytes > sizes.max_bytes {
        return Err(format!("{text:?}: the shortest comes first, as in 300..2000"));
    }
    Ok(sizes)
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    #[test]
    fn messages_have_one_size_or_a_range_of_sizes() {
        let of = |min_bytes, max_bytes| Ok(Sizes { min_bytes, max_bytes });
        assert_eq!(sizes("300..2000"), of(300, 2000));
        assert_eq!(sizes("64"), of(64, 64));
        assert_eq!(sizes("1K..4KiB"), of(1024, 4096));
        for bad in ["2000..300", "31", "32..1G", "", "..", "300..", "300...2000", "-1..5"] {
            let problem = sizes(bad).unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{bad:?}: {problem}");
        }
    }
}
