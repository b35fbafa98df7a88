//! Tests with catalogues of languages in temporary folders.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A language that can be run wherever there is a shell.
const SHELL: &str = "name = 'Shell'\nway = 'printf'\ninstall = 'apt install dash'\n\
    [[toolchain]]\nversion = ['sh', '-c', 'echo sh 1.0']\nrun = ['sh', '{source}/program.sh']\n";
/// A language that can be run nowhere.
const NOWHERE: &str = "name = 'Nowhere'\ninstall = 'apt install nowhere'\n\
    [[toolchain]]\nversion = ['no-such-program-anywhere']\nrun = ['no-such-program-anywhere']\n\
    [[variant]]\nid = 'nowhere'\nname = 'Nowhere put'\nway = 'put'\n\
    [[variant]]\nid = 'nowhere-get'\nname = 'Nowhere get'\nway = 'get'\ntasks = ['bytes-read']\n";
const OWN: &str = "name = 'Own'\nway = 'Writer'\ninstall = 'comes with wrote'\n\
    [[toolchain]]\nversion = ['{wrote}', '-c', 'echo wrote 0']\nrun = ['{wrote}']\n";

/// Creates a folder in `parent` with this manifest and a program.
fn folder(parent: &TempDir, id: &str, manifest: &str) -> PathBuf {
    let path = parent.path().join(id);
    fs::create_dir_all(path.join("lib")).unwrap();
    fs::write(path.join(FILE_NAME), manifest).unwrap();
    fs::write(path.join("program.sh"), "echo").unwrap();
    fs::write(path.join("lib/more.sh"), "true").unwrap();
    path
}

/// Returns a catalogue of three added languages.
fn three(parent: &TempDir) -> Catalogue {
    let of = |id, manifest| read_added(&folder(parent, id, manifest)).unwrap();
    Catalogue { entries: vec![of("shell", SHELL), of("nowhere", NOWHERE), of("own", OWN)] }
}

fn refused(folder: &Path) -> String {
    let error = catalogue(&[folder.to_owned()]).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error:?}");
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn request(only: &[&str]) -> Request {
    let mut request = Request::new("/".into(), "/nowhere".into());
    request.only = only.iter().map(|name| (*name).to_owned()).collect();
    request
}

fn ids(languages: &[Language]) -> Vec<&str> {
    languages.iter().map(|language| language.id.as_str()).collect()
}

#[test]
fn an_added_folder_is_a_language_by_its_name() {
    let parent = tempfile::tempdir().unwrap();
    let path = folder(&parent, "shell-2", SHELL);
    fs::create_dir(path.join(".git")).unwrap();
    fs::write(path.join(".git/config"), "x").unwrap();
    fs::create_dir(path.join("__pycache__")).unwrap();
    fs::write(path.join("__pycache__/program.pyc"), "x").unwrap();
    let catalogue = catalogue(&[path]).unwrap();
    assert_eq!(catalogue.ids().last().unwrap(), "shell-2");
    let entry = catalogue.entries.last().unwrap();
    assert_eq!(entry.manifest.name, "Shell");
    let paths: Vec<_> = entry.files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["lib/more.sh", "manifest.toml", "program.sh"]);
    assert_eq!(entry.files[2].1, b"echo");
}

#[test]
fn a_folder_that_is_no_language_is_refused_with_the_reason() {
    let parent = tempfile::tempdir().unwrap();
    let none = parent.path().join("none");
    assert_eq!(refused(&none), format!("{}: does not exist", none.display()));
    fs::create_dir(&none).unwrap();
    assert!(refused(&none).ends_with("none: holds no manifest.toml, which a language needs"));
    let file = none.join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(&file).ends_with("is not a folder: name the folder of a language"));
    let name = folder(&parent, "Shell 2", SHELL);
    assert!(refused(&name).ends_with(": small letters, digits and hyphens"));
    let wrong = folder(&parent, "wrong", "name = ''");
    let told = format!("{}/manifest.toml: line 1: name = '': must not be empty", wrong.display());
    assert_eq!(refused(&wrong), told);
    fs::write(wrong.join(FILE_NAME), [0xff]).unwrap();
    assert!(refused(&wrong).ends_with("manifest.toml: is not UTF-8 text"));
}

#[test]
fn links_and_pipes_are_refused_and_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    let linked = folder(&parent, "linked", SHELL);
    symlink("/", linked.join("lib/root")).unwrap();
    assert!(refused(&linked).contains("lib/root: is not a regular file"));
    let manifest = folder(&parent, "manifest", SHELL);
    fs::remove_file(manifest.join(FILE_NAME)).unwrap();
    symlink(linked.join(FILE_NAME), manifest.join(FILE_NAME)).unwrap();
    assert!(refused(&manifest).contains("manifest.toml: is not a regular file"));
    let piped = folder(&parent, "piped", SHELL);
    let mode = rustix::fs::Mode::RWXU;
    rustix::fs::mknodat(rustix::fs::CWD, piped.join("pipe"), rustix::fs::FileType::Fifo, mode, 0)
        .unwrap();
    assert!(refused(&piped).contains("pipe: is not a regular file"));
    // The folder may be named by a symbolic link.
    let link = parent.path().join("link");
    symlink(folder(&parent, "shell", SHELL), &link).unwrap();
    assert_eq!(catalogue(&[link]).unwrap().ids().last().unwrap(), "shell");
}

#[test]
fn a_folder_too_large_for_a_language_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let large = folder(&parent, "large", SHELL);
    let file = fs::File::create(large.join("large")).unwrap();
    file.set_len((4 << 20) + 1).unwrap();
    assert!(refused(&large).ends_with("holds more than 4 MiB: is it the folder of a language?"));
    // Together, the two files exceed the limit.
    file.set_len(3 << 20).unwrap();
    fs::File::create(large.join("lib/second")).unwrap().set_len(1 << 20).unwrap();
    assert!(refused(&large).contains("more than 4 MiB"));
}

#[test]
fn an_id_can_be_taken_once() {
    let parent = tempfile::tempdir().unwrap();
    let (nowhere, other) = (folder(&parent, "nowhere", NOWHERE), tempfile::tempdir().unwrap());
    for id in ["nowhere", "nowhere-get"] {
        let again = folder(&other, id, SHELL);
        let error = catalogue(&[nowhere.clone(), again]).unwrap_err().to_string();
        let told = format!("language {id:?} exists already: give it another id");
        assert!(error.ends_with(&told), "{error}");
    }
    // `drive` is the name of the drive's rows.
    let error = catalogue(&[folder(&other, "drive", SHELL)]).unwrap_err().to_string();
    assert!(error.ends_with("row \"drive\" exists already: give it another id"), "{error}");
    let variant = folder(&other, "third", NOWHERE);
    assert!(catalogue(&[nowhere, variant]).is_err());
}

#[test]
fn installed_languages_are_chosen_and_missing_ones_named() {
    let parent = tempfile::tempdir().unwrap();
    let (chosen, languages) = three(&parent).choose(&request(&[]), &Stop::new()).unwrap();
    assert_eq!(ids(&languages), ["shell", "nowhere", "nowhere-get"]);
    assert_eq!(languages[0].state, State::Ready);
    assert_eq!(languages[0].version.as_deref(), Some("sh 1.0"));
    assert_eq!((&languages[0].because, &languages[0].install), (&None, &None));
    assert_eq!(languages[2].state, State::Missing);
    assert_eq!(languages[2].name, "Nowhere get");
    assert_eq!(languages[2].install.as_deref(), Some("apt install nowhere"));
    let because = "no-such-program-anywhere: not found in PATH nor in ~/.local/bin";
    assert_eq!(languages[2].because.as_deref(), Some(because));
    assert_eq!(chosen.len(), 1);
    assert_eq!(chosen[0].variant.id, "shell");
    assert!(chosen[0].tools.run[0].starts_with('/') && chosen[0].tools.run[0].ends_with("/sh"));
}

#[test]
fn wrote_itself_is_left_out_where_it_is_not_at_hand_unless_it_is_asked_for() {
    let parent = tempfile::tempdir().unwrap();
    let catalogue = three(&parent);
    let (_, languages) = catalogue.choose(&request(&["own"]), &Stop::new()).unwrap();
    assert_eq!(languages[0].because.as_deref(), Some("wrote itself was not found"));
    let mut request = request(&[]);
    request.wrote = Some("/bin/sh".into());
    let (chosen, languages) = catalogue.choose(&request, &Stop::new()).unwrap();
    assert_eq!(ids(&languages), ["shell", "nowhere", "nowhere-get", "own"]);
    assert_eq!(languages[3].version.as_deref(), Some("wrote 0"));
    assert_eq!(chosen[1].tools.run, ["/bin/sh"]);
}

#[test]
fn only_takes_programs_and_folders() {
    let parent = tempfile::tempdir().unwrap();
    let catalogue = three(&parent);
    let chosen = |only: &[&str]| {
        let (_, languages) = catalogue.choose(&request(only), &Stop::new()).unwrap();
        ids(&languages).join(" ")
    };
    assert_eq!(chosen(&["nowhere"]), "nowhere nowhere-get");
    assert_eq!(chosen(&["nowhere-get"]), "nowhere-get");
    assert_eq!(chosen(&["nowhere-get", "shell", "shell"]), "shell nowhere-get");
}

#[test]
fn a_name_that_nothing_has_is_answered_with_the_near_one_and_all() {
    let parent = tempfile::tempdir().unwrap();
    let catalogue = three(&parent);
    let refused = |name| match catalogue.choose(&request(&["shell", name]), &Stop::new()) {
        Err(Error::Usage(told)) => told,
        other => panic!("{other:?}"),
    };
    let told = "no such language among shell, nowhere, nowhere-get, own";
    assert_eq!(refused("shel"), format!("--only \"shel\": {told}; did you mean 'shell'?"));
    assert_eq!(refused("zzz"), format!("--only \"zzz\": {told}"));
}

#[test]
fn languages_that_are_not_asked_for_are_not_looked_for() {
    let parent = tempfile::tempdir().unwrap();
    let mark = parent.path().join("asked");
    let version = format!("['sh', '-c', 'touch {}; echo 1']", mark.display());
    let marking = SHELL.replace("['sh', '-c', 'echo sh 1.0']", &version);
    let mut catalogue = three(&parent);
    catalogue.entries.push(read_added(&folder(&parent, "marking", &marking)).unwrap());
    catalogue.choose(&request(&["shell"]), &Stop::new()).unwrap();
    assert!(!mark.exists());
    catalogue.find(&[], None, &Stop::new()).unwrap();
    assert!(mark.exists());
}

#[test]
fn a_raised_stop_ends_the_search() {
    let parent = tempfile::tempdir().unwrap();
    let stop = Stop::new();
    stop.request();
    assert!(matches!(three(&parent).find(&[], None, &stop), Err(Error::Interrupted)));
}

#[test]
fn a_program_does_its_tasks() {
    let parent = tempfile::tempdir().unwrap();
    let entry = read_added(&folder(&parent, "nowhere", NOWHERE)).unwrap();
    let tools = Tools { version: String::new(), build: Vec::new(), run: Vec::new() };
    let [put, get] = entry.programs().try_into().unwrap();
    let does = |variant: Variant, task| {
        Candidate { entry: entry.clone(), variant, tools: tools.clone() }.does(task)
    };
    assert!(does(put.clone(), Task::BytesWrite) && does(put.clone(), Task::Lines));
    assert!(!does(put, Task::Log));
    assert!(does(get.clone(), Task::BytesRead) && !does(get, Task::BytesWrite));
}

#[test]
fn all_languages_are_embedded_each_with_its_program() {
    let catalogue = catalogue(&[]).unwrap();
    let folders: Vec<&str> = catalogue.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(
        folders,
        [
            "c", "cpp", "go", "java", "kotlin", "node", "python", "ruby", "rust", "scala", "wrote",
            "zig"
        ]
    );
    let ids = catalogue.ids();
    for id in ["cpp", "cpp-get-put", "wrote", "wrote-cached"] {
        assert!(ids.iter().any(|known| known == id), "{id} is not among {ids:?}");
    }
    for entry in &catalogue.entries {
        let programs = entry.files.iter().filter(|(path, _)| path != Path::new(FILE_NAME));
        assert!(programs.count() > 0, "{} has no program", entry.id);
        for program in entry.programs() {
            assert!(!program.way.is_empty(), "{} has no way", program.id);
        }
    }
}

#[test]
fn files_named_by_an_embedded_manifest_are_in_its_folder() {
    for entry in catalogue(&[]).unwrap().entries {
        let commands = entry.manifest.toolchains.iter().flat_map(|toolchain| toolchain.commands());
        let named = commands.flatten().filter_map(|word| word.strip_prefix("{source}/"));
        for name in named {
            let is_there = entry.files.iter().any(|(path, _)| path == Path::new(name));
            assert!(is_there, "{}: {{source}}/{name} is not there", entry.id);
        }
    }
}
