//! Tests of `wrote fio`, and of a link named `fio`: scripts that call fio work unchanged.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the program in a folder, through a link named `fio`.
fn fio(folder: &Path, words: &str) -> Output {
    let link = folder.join("fio");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wrote"), &link).expect("a link");
    }
    let words = words.split(' ').filter(|word| !word.is_empty());
    Command::new(link).args(words).current_dir(folder).output().expect("the program runs")
}

/// Returns the standard output of a run, which must succeed without any output on standard error.
fn printed(folder: &Path, words: &str) -> String {
    let output = fio(folder, words);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &*complaint), (Some(0), ""), "{words}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_version_is_a_number_that_front_ends_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for words in ["--version", "-v"] {
        assert_eq!(printed(folder.path(), words), "fio-3.42\n");
    }
    assert!(printed(folder.path(), "--help").contains("json+"));
}

#[test]
fn existing_files_are_used_and_the_output_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    fs::write(place("data"), "short").expect("a file");
    fs::write(place("out"), "old").expect("a file");
    let words = "--name=a --rw=randread --bs=4k --size=64k --filename=data --output=out \
                 --output-format=json,normal,terse";
    assert_eq!(printed(folder.path(), words), "");
    assert_eq!(fs::metadata(place("data")).expect("it is there").len(), 65_536);
    let out = fs::read_to_string(place("out")).expect("text");
    let [terse, json, normal] = ["3;fio-3.42;a;0;0;64;", "\n{", "a: (groupid=0, jobs=1): err= 0"]
        .map(|begin| out.find(begin).unwrap_or_else(|| panic!("{begin}: {out}")));
    assert!(terse < json && json < normal, "{out}");
    for words in [
        "--name=b --rw=write --bs=4k --size=64k --filename=data --numjobs=2",
        "--name=c \
         --create_only=1 --rw=read --size=1m --filename=made",
    ] {
        printed(folder.path(), &words.replace("         ", ""));
    }
    assert_eq!(fs::metadata(place("made")).expect("it is there").len(), 1 << 20);
}

#[test]
fn a_job_tells_what_its_writes_survive() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = "--name=a --rw=write --bs=4k --size=64k --output-format=json+";
    let document = json(&printed(folder.path(), words));
    let job = &document["jobs"][0];
    assert!(job["wrote"].as_str().expect("a text").ends_with("nothing was flushed"), "{job}");
    assert!(job["write"]["clat_ns"]["bins"].is_object());
    assert!(document["wrote"]["findings"].is_array());
    let text = printed(folder.path(), "--name=b --rw=write --bs=4k --size=64k --fsync=1");
    assert!(text.contains("\n  wrote        : a write here survives"), "{text}");
}

#[test]
fn a_job_with_exitall_ends_the_others_and_a_steady_one_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = "[global]\nbs=4k\nsize=64k\ntime_based\n[short]\nruntime=1\nexitall\n[long]\n\
               runtime=600\n";
    fs::write(folder.path().join("j.fio"), job).expect("a file");
    let document = json(&printed(folder.path(), "j.fio --output-format=json"));
    assert_eq!(document["jobs"].as_array().expect("a list").len(), 2);
    let words = "--name=a --rw=read --bs=4k --size=64k --time_based --runtime=600 --ss=iops:1000% \
                 --ss_dur=2 --output-format=json";
    let job = &json(&printed(folder.path(), words))["jobs"][0];
    assert_eq!(job["steadystate"]["attained"], 1, "{job}");
}

#[test]
fn a_signal_ends_the_jobs_and_what_they_did_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let words =
        "--name=a --rw=write --bs=4k --size=64k --time_based --runtime=600 --fallocate=none";
    let mut child = Command::new(env!("CARGO_BIN_EXE_wrote"));
    let child = child.arg("fio").args(words.split(' ')).current_dir(folder.path());
    let child = child.stdout(Stdio::piped()).spawn().expect("the program runs");
    while fs::metadata(folder.path().join("a.0.0")).map_or(0, |file| file.len()) == 0 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("a signal");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(130));
    assert!(text.contains("\n  WRITE: bw="), "{text}");
}

#[test]
fn all_that_is_refused_is_told_at_once_and_nothing_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = "[a]\nsize=1m\nzonemode=zbd\nfoo=1\n";
    fs::write(folder.path().join("j.fio"), job).expect("a file");
    let output = fio(folder.path(), "j.fio");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{told}");
    assert!(told.contains("line 3: zonemode=zbd") && told.contains("line 4: foo=1"), "{told}");
    assert!(!folder.path().join("a.0.0").exists());
}

#[test]
fn a_device_is_written_to_only_if_it_is_named_and_holds_nothing() {
    // W7
    let test = "a_device_is_written_to_only_if_it_is_named_and_holds_nothing";
    let mounted = fixtures::or_skip!(fixtures::Mounted::partition("ext4", 64 << 20));
    let device = wrote::device::device_at(mounted.path()).expect("a device");
    let device = format!("/dev/{}", device.name);
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!("--name=a --rw=write --size=1m --filename={device}");
    let refused = |words: &str| {
        let output = fio(folder.path(), words);
        assert_eq!(output.status.code(), Some(1), "{test}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&words).contains("--allow-device"), "{words}");
    let told = refused(&format!("{words} --allow-device={device}"));
    assert!(told.contains("is in use") || told.contains("holds data"), "{told}");
}

/// Returns a text with its digits replaced, and without the lines that depend on measured figures.
fn shape(text: &str) -> Vec<String> {
    let depends = ["  lat (", "     | ", "   bw (", "   iops", "  wrote", "Disk", "  vd", "fio-"];
    let lines = text.lines().filter(|line| !depends.iter().any(|start| line.starts_with(start)));
    let lines = lines.filter(|line| !line.contains("Laying out IO file"));
    let masked = |line: &str| {
        let line: String = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut shape = String::new();
        for letter in line.chars().filter(|letter| !"KMGi.k ".contains(*letter)) {
            let letter = if letter.is_ascii_digit() { '0' } else { letter };
            if letter != '0' || !shape.ends_with('0') {
                shape.push(letter);
            }
        }
        let shape = shape.replace("(nsec)", "(usec)").replace("(msec)", "(usec)");
        // This leaves out the process number and the date.
        shape.split(":pid").next().unwrap_or_default().to_owned()
    };
    lines.map(masked).collect()
}

#[test]
fn the_text_of_a_job_has_fios_lines() {
    let test = "the_text_of_a_job_has_fios_lines";
    let folder = tempfile::tempdir().expect("a folder");
    let job = "[tiny]\nbs=4k\nrw=randrw\nsize=1m\nfsync=8\n[more]\nstonewall\nsize=1m\nnumjobs=2\n";
    std::fs::write(folder.path().join("tiny.fio"), job).expect("a file");
    let run = |program: &mut Command| program.arg("tiny.fio").current_dir(folder.path()).output();
    let Ok(fios) = run(&mut Command::new("fio")) else {
        return fixtures::skip(test, "fio is not installed");
    };
    let ours = run(Command::new(env!("CARGO_BIN_EXE_wrote")).arg("fio")).expect("wrote runs");
    let text = |output: &std::process::Output| shape(&String::from_utf8_lossy(&output.stdout));
    assert!(ours.status.success() && ours.stderr.is_empty(), "{ours:?}");
    assert_eq!(text(&ours), text(&fios));
}
