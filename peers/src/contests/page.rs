//! The rows' sections in `peers/results/contests.md`, with tables, commands and circumstances. It
//! is a separate file because measuring does not depend on the page.

use super::contest::ContestResult;
use super::rows::Row;
use super::site::Site;
use super::wrote;
use lab::tools::disks::DiskKind;
use lab::tools::failure::Failure;

/// The start of a section, which precedes the row's name.
const HEADING: &str = "### `";

/// Returns a description of the machine and its file system, from a small run of wrote, and the
/// version of fio.
pub fn circumstances(site: &Site) -> Result<[String; 2], Failure> {
    let small = "wrote bench . --only stream/cached --size 16M --runs 1 --format json";
    let place = wrote::place(&site.run(small)?.stdout)?;
    Ok([place, site.run("fio --version")?.stdout.trim().to_owned()])
}

/// Returns the section of a row, in Markdown.
pub fn section(
    row: &Row,
    disk: DiskKind,
    [place, fio_version]: &[String; 2],
    site: &Site,
    all: &[ContestResult],
) -> String {
    let Row { name, help: words, .. } = row;
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let (rounds, polls) = (site.rounds, if site.has_poll_queues { "with" } else { "without" });
    let size = site.size.as_ref().map(|size| format!(" --size {}", size.text)).unwrap_or_default();
    let disk = match disk {
        DiskKind::Own => String::new(),
        slow => format!(" --disk {slow}"),
    };
    let tables: Vec<&str> = all.iter().map(|measured| measured.table.as_str()).collect();
    let commands = each_once(all.iter().flat_map(|measured| measured.commands.clone()));
    let jobs = each_once(all.iter().flat_map(|measured| &measured.jobs));
    let files = jobs.iter().map(|job| format!("# {}\n{}", job.file_name(), job.text()));
    let files = files.collect::<Vec<_>>().join("\n");
    let files = if files.is_empty() { files } else { format!("\n\n```ini\n{files}```") };
    format!(
        "{HEADING}{name}`\n\n{words}.\n\n{}\n\n<details><summary>{date}, \
         <code>cargo xtask peers --only {name} --pairs {rounds}{size}{disk}</code>: \
         {place} ({polls} poll queues), {fio_version}</summary>\n\n\
         ```sh\n{}\n```{files}\n\n</details>",
        tables.join("\n\n"),
        commands.join("\n"),
    )
}

/// Returns the section of a row that cannot be measured on this machine. It is only for the
/// terminal.
pub fn not_run(row: &Row, because: &str) -> String {
    format!("{HEADING}{}`\n\nnot run: {because}", row.name)
}

fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    all.for_each(|one| {
        if !once.contains(&one) {
            once.push(one);
        }
    });
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::job::Job;
    use crate::contests::rows::named as row;
    use crate::contests::site::fake;

    fn circumstances() -> [String; 2] {
        ["Linux 6.18.0, 2 x Some CPU, ext4 on vda1", "fio-3.33"].map(str::to_owned)
    }

    fn measured() -> ContestResult {
        ContestResult {
            table: "| work |".into(),
            commands: vec!["wrote bench .".into()],
            jobs: vec![Job::new("random-read", "bs=4k size=1g", "/dev/zram0")],
        }
    }

    fn shown(size: Option<&str>) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let size = size.map(|size| size.parse().expect("a size"));
        let site = Site { size, ..fake::site(folder.path(), 1, 4096) };
        section(row("save"), DiskKind::Own, &circumstances(), &site, &[measured(), measured()])
    }

    #[test]
    fn the_text_says_where_when_and_how() {
        let text = shown(None);
        let place = "Linux 6.18.0, 2 x Some CPU, ext4 on vda1 (without poll queues), fio-3.33<";
        assert!(text.contains(place), "{text}");
        let begin = "### `save`\n\nwrote::write against the same steps by hand.\n\n| work |\n\n";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains("```sh\nwrote bench .\n```"), "{text}");
    }

    #[test]
    fn the_command_is_the_one_that_was_given() {
        let with = shown(Some("4m"));
        assert!(with.contains("<code>cargo xtask peers --only save --pairs 1 --size 4m</code>"));
        let without = shown(None);
        assert!(without.contains("<code>cargo xtask peers --only save --pairs 1</code>"));
    }

    #[test]
    fn the_job_files_are_shown_whole() {
        let text = shown(None);
        let job = &measured().jobs[0];
        let expected = format!("\n```ini\n# random-read.fio\n{}```\n\n</details>", job.text());
        assert!(text.ends_with(&expected), "{text}");
    }

    #[test]
    fn without_the_device_the_line_says_so() {
        let text = not_run(row("random-read"), "sizing /dev/zram0 needs root");
        assert_eq!(text, "### `random-read`\n\nnot run: sizing /dev/zram0 needs root");
    }
}
