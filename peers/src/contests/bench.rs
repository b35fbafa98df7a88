//! The rows of `wrote bench` that fio can do too.

use super::contest::Contender;
use super::outcome::Outcome;
use super::rows::Words;
use super::site::Site;
use super::wrote;
use lab::tools::failure::Failure;

/// fio with the options of every job. It creates no file, because the row chooses its state.
const FIO: &str = "fio --name=peer --rw=write --fallocate=none --eta=never --output-format=json";

/// Makes the contender of a row of `wrote bench`, by `settings` that begin with its name. An
/// uncounted run finds how many bytes its peers write, and the state of their blocks.
pub fn own(name: &str, settings: &str, site: &Site) -> Result<(Contender, Words), Failure> {
    let command = format!("wrote bench . --only {settings} --runs 1 --format json");
    let row = settings.split(' ').next().unwrap_or_default().to_owned();
    let ours = move |site: &Site, line: &str| wrote::run(&site.run(line)?.stdout, &row);
    let (first, blocks) = ours(site, &command)?;
    let learned = [("blocks", blocks), ("bytes", first.bytes.to_string())];
    let learned = learned.map(|(key, word)| (key.to_owned(), word)).into();
    Ok((Contender::new(name, command, move |site, line| Ok(ours(site, line)?.0)), learned))
}

/// Makes the contender of fio with `arguments`, for the work described by `learned`. Its CPU time
/// is the job's own thread's.
pub fn fio(arguments: &str, learned: &Words, site: &Site) -> Result<Contender, Failure> {
    let lacks = || Failure::Failed("rows.toml: no row of wrote bench before its peer".to_owned());
    let (blocks, bytes) = learned.get("blocks").zip(learned.get("bytes")).ok_or_else(lacks)?;
    let command = format!("{FIO} {arguments} --size={bytes} --filename=peer");
    let run = |site: &Site, line: &str| Outcome::of_fio(&site.run(line)?.stdout, "fio");
    let prepare = prepare(blocks, bytes)?;
    let made = Contender { prepare, ..Contender::new("fio", command, run) };
    if blocks == "written" {
        made.run(site)?;
    }
    Ok(made)
}

/// Returns the shell line that brings the file `peer` into the state of
/// `settings.effective.blocks`.
fn prepare(blocks: &str, bytes: &str) -> Result<String, Failure> {
    match blocks {
        "new" => Ok("rm -f peer".to_owned()),
        "allocated" => Ok(format!("rm -f peer && fallocate -l {bytes} peer && sync peer")),
        "written" => Ok(String::new()),
        other => Err(Failure::Failed(format!("wrote bench: unknown blocks: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn the_file_is_new_allocated_or_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1, 4096);
        let peer = folder.path().join("peer");
        let bring = |blocks| site.run(&prepare(blocks, "8192").expect("a state")).expect("a shell");
        bring("allocated");
        assert_eq!(std::fs::metadata(&peer).expect("there").len(), 8192);
        std::fs::write(&peer, "written").expect("room");
        bring("written");
        assert_eq!(std::fs::read(&peer).expect("there"), b"written");
        bring("new");
        assert!(!peer.exists());
    }

    #[test]
    fn the_words_of_the_result_are_known() {
        for blocks in ["new", "allocated", "written"] {
            prepare(blocks, "8192").expect("a state");
        }
        assert!(prepare("other", "8192").is_err());
    }
}
