//! Properties that hold for any text: it never makes the parser panic, and never causes an error of
//! more than one line.

use super::{ARTICLE, ParseError, Parsed, read};
use crate::fio::keys;
use crate::spec::BlockSizes;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const MIXED: &str = "\
; a comment
[global]
ioengine=libaio
size=1m
io_size=${SIZE}
bssplit=4k/60:64k/,8k
directory=/tmp/a:/tmp/b
percentile_list=50:99.9
runtime=10s
time_based

[readers]
rw=randrw
rwmixread=70
rate_iops=100,200
numjobs=4
nrfiles=2
filename_format=f.$jobname.$filenum
offset_increment=1m

[writers]
stonewall
new_group=0
verify=crc32c
filename=x\\:y:z
fallocate=posix
";

/// Checks that messages are printable, and that jobs can run.
fn is_sound(text: &str, result: Result<Parsed, Vec<ParseError>>) -> Result<(), TestCaseError> {
    match result {
        Err(errors) => {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert_eq!(error.to_string().lines().count(), 1, "{:?}", text);
            }
        }
        Ok(parsed) => {
            prop_assert!(!parsed.jobs.is_empty());
            for note in &parsed.notes {
                prop_assert_eq!(note.to_string().lines().count(), 1);
            }
            for job in &parsed.jobs {
                prop_assert!(!job.files.paths.is_empty());
                prop_assert!(job.io.iodepth > 0 && job.pace.loops > 0);
                for sizes in [&job.order.read_bs, &job.order.write_bs] {
                    if let BlockSizes::Split(shares) = sizes {
                        prop_assert_eq!(shares.iter().map(|share| share.percent).sum::<u32>(), 100);
                    }
                    prop_assert!(sizes.least_bytes() > 0);
                    prop_assert!(sizes.most_bytes().is_multiple_of(sizes.unit_bytes()));
                }
                let file_bytes = job.files.file_bytes.unwrap_or(0);
                prop_assert!(job.files.offset_bytes.checked_add(file_bytes).is_some());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_breaks_the_parser(text in any::<String>()) {
        is_sound(&text, read(&text))?;
        is_sound(&text, read(&format!("[a]\n{text}")))?;
    }

    #[test]
    fn no_value_of_any_key_breaks_the_parser(
        key in select(keys::all_names().collect::<Vec<_>>()),
        value in prop_oneof!["\\PC*", "[0-9]{1,20}[kmgtpibz%smuhd]{0,3}", "[0-9:,/.k-]{0,12}"],
    ) {
        let text = format!("[a]\n{key}={value}\n");
        is_sound(&text, read(&text))?;
    }

    #[test]
    fn no_change_to_a_job_file_breaks_the_parser(
        file in select(vec![ARTICLE, MIXED]),
        changes in proptest::collection::vec((any::<Index>(), 0..4_u8, any::<char>()), 1..8),
    ) {
        let mut text: Vec<char> = file.chars().collect();
        for (index, change, with) in changes {
            if text.is_empty() {
                break;
            }
            let at = index.index(text.len());
            match change {
                0 => { text.remove(at); }
                1 => text.insert(at, with),
                2 => text[at] = with,
                _ => text.truncate(at),
            }
        }
        let text: String = text.into_iter().collect();
        is_sound(&text, read(&text))?;
    }
}

#[test]
fn the_mixed_job_file_is_one() {
    assert_eq!(read(MIXED).expect("jobs").jobs.len(), 5);
}
