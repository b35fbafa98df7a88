//! Several ranks: `mpirun wrote` against IOR and mdtest, built where their source is given.

use super::contest::{Contender, Contest};
use super::fresh::{self, FRESH};
use super::outcome::{Outcome, Unit};
use super::site::Site;
use lab::tools::failure::{Failure, Tried};
use lab::tools::packages::{self, MPI};
use lab::tools::repository::{cargo, target};
use lab::tools::run::{HANG, Show, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// The folder of the source of github.com/hpc/ior.
const SOURCE: &str = "WROTE_IOR_SOURCE";
const RANKS: [u32; 3] = [1, 2, 4];
const MPIRUN: &str = "mpirun --allow-run-as-root --oversubscribe --bind-to none --quiet -np";
/// MiB of a rank's file.
const FILE_MIB: u64 = 256;
/// Files of a rank in the metadata row, enough for half a second.
const FILES: u32 = 20_000;

/// Sums up IOR's JSON: the bytes, and the time from the first open to the last close.
const OF_IOR: &str = "python3 -c 'import json; r = \
    json.load(open(\"ior.json\"))[\"tests\"][0][\"Results\"]; r = [x for x in r if x[\"access\"] \
    == \"write\"][0]; print(json.dumps({\"bytes\": int(r[\"blockKiB\"] * 1024) * RANKS, \
    \"elapsed_s\": r[\"totalTime\"], \"cpu_s\": 0.0}))'";
/// The same of a row of our own result.
const OF_WROTE: &str = "python3 -c 'import json; r = \
    json.load(open(\"wrote.json\"))[\"scenarios\"][0][\"rows\"][0][\"runs\"][0]; \
    print(json.dumps({\"bytes\": r[\"bytes\"], \"operations\": round(r[\"iops\"] * \
    r[\"elapsed_s\"]), \"elapsed_s\": r[\"elapsed_s\"], \"cpu_s\": 0.0}))'";
/// The rate of mdtest's table, as a time for all files.
const OF_MDTEST: &str = "awk '/File creation/ && !seen++ {printf \"{\\\"bytes\\\": 0, \
    \\\"operations\\\": %d, \\\"elapsed_s\\\": %.6f, \\\"cpu_s\\\": 0.0}\\n\", TOTAL, TOTAL / $4}' \
    mdtest.txt";

/// Streams of a file for each rank, flushed at the end.
pub fn write() -> Result<Vec<Contest>, Failure> {
    programs()?;
    let contest = |ranks: u32| {
        let clean = "rm -f data data.* ior.json wrote.json";
        let job = format!(
            "printf '[w]\\nrw=write\\nbs=1m\\nsize={FILE_MIB}m\\nioengine=psync\\nfallocate=none\\n\
             filename=data\\nend_fsync=1\\n' > ranks.fio"
        );
        let own = format!(
            "{MPIRUN} {ranks} wrote-mpi run ranks.fio --format json -o wrote.json --force \
             2>/dev/null && {OF_WROTE}"
        );
        let peer = format!(
            "{MPIRUN} {ranks} ior -a POSIX -F -w -e -k -b {FILE_MIB}m -t 1m -o data -O \
             summaryFormat=JSON -O summaryFile=ior.json >/dev/null && {}",
            OF_IOR.replace("RANKS", &ranks.to_string())
        );
        let contenders = vec![
            prepared("`wrote run`", own, &format!("{clean}; {job}")),
            prepared("IOR", peer, clean),
        ];
        let what = format!("ranks: {ranks}, {FILE_MIB} MiB a rank, 1 MiB writes, fsync");
        Contest::new(what, Unit::Stream, contenders, Vec::new())
    };
    Ok(RANKS.into_iter().map(contest).collect())
}

/// Files created in one folder by all ranks, each run on a new file system.
pub fn meta() -> Result<Vec<Contest>, Failure> {
    programs()?;
    packages::install(&["mkfs.ext4"])?;
    let contest = |ranks: u32| {
        let own = format!(
            "{MPIRUN} {ranks} wrote-mpi bench . --only meta/shared/create --meta-files {FILES} \
             --runs 1 --format json -o wrote.json 2>/dev/null && {OF_WROTE}"
        );
        let peer = format!(
            "{MPIRUN} {ranks} mdtest -n {FILES} -F -C -d meta > mdtest.txt && {}",
            OF_MDTEST.replace("TOTAL", &(FILES * ranks).to_string())
        );
        let contenders = vec![mounted("`wrote bench`", &own), mounted("mdtest", &peer)];
        let what = format!("ranks: {ranks}, {FILES} empty files a rank, created in one folder");
        Contest::new(what, Unit::Messages, contenders, Vec::new())
    };
    Ok(RANKS.into_iter().map(contest).collect())
}

/// A contender that works on a new file system, which is unmounted however it ends.
fn mounted(name: &str, command: &str) -> Contender {
    prepared(name, fresh::mounted("", command), FRESH)
}

/// A contender that prints its outcome. CPU time is that of the whole, with the starter's.
fn prepared(name: &str, command: String, prepare: &str) -> Contender {
    let run = |site: &Site, line: &str| {
        let (finished, whole) = site.measure(line)?;
        // The last line is that of `trial`, and the one before it the program's.
        let told = finished.stdout.trim_end().lines().rev().nth(1).unwrap_or_default();
        let outcome = Outcome::of_line(told, line)?;
        Ok(Outcome { cpu_s: whole.cpu_s, memory_bytes: whole.memory_bytes, ..outcome })
    };
    Contender { prepare: prepare.to_owned(), ..Contender::new(name, command, run) }
}

/// The folder of the programs, by the names that the commands use.
pub fn folder() -> PathBuf {
    target().join("mpi/peers")
}

/// Builds `wrote` with its ranks, and IOR with mdtest where their source is given.
fn programs() -> Result<(), Failure> {
    let Some(source) = std::env::var_os(SOURCE).map(PathBuf::from) else {
        let text = format!("{SOURCE} names no folder with the source of github.com/hpc/ior");
        return Err(Failure::Skipped(text));
    };
    packages::install(MPI)?;
    let place = target().join("mpi");
    let mut command = cargo(&["build", "--release", "-p", "wrote-cli", "--features", "mpi"]);
    run(command.env("CARGO_TARGET_DIR", &place), HANG, Show::Live)?.success("cargo build")?;
    let built = source.join("src");
    if !built.join("mdtest").is_file() {
        packages::install(&["autoreconf", "automake", "libtoolize", "pkg-config", "make"])?;
        let build = "./bootstrap && ./configure CC=mpicc >/dev/null && make >/dev/null";
        let mut command = Command::new("sh");
        command.args(["-c", build]).current_dir(&source);
        run(&mut command, HANG, Show::Errors)?.success("the build of IOR")?;
    }
    fs::create_dir_all(folder()).tried(folder().display())?;
    let wrote = place.join("release/wrote");
    for (program, name) in
        [(wrote, "wrote-mpi"), (built.join("ior"), "ior"), (built.join("mdtest"), "mdtest")]
    {
        let program = std::path::absolute(&program).tried(program.display())?;
        let link = folder().join(name);
        // Of an earlier measurement.
        let _ = fs::remove_file(&link);
        symlink(&program, &link).tried(link.display())?;
    }
    Ok(())
}
