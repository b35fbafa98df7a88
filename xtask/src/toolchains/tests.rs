//! Tests of installed toolchains: found ones, and ones that must not be touched.

use super::*;
use tempfile::TempDir;

const ZIG: Toolchain = Toolchain {
    name: "zig",
    version: "1.0",
    registry: Registry::PyPi { package: "no-such-package" },
    program: "zig",
    command: "echo '{folder}/zig'",
};

/// Makes a home with the fetched toolchain of [`ZIG`], with or without launchers.
fn home(launchers: bool) -> (TempDir, Places) {
    let home = tempfile::tempdir().expect("a folder");
    let places = Places {
        path: vec![home.path().join("bin")],
        launchers: home.path().join(".local/bin"),
        toolchains: home.path().join("toolchains"),
    };
    fs::create_dir_all(ZIG.folder(&places)).expect("a folder");
    fs::create_dir_all(&places.path[0]).expect("a folder");
    if launchers {
        ZIG.install(&places).expect("nothing to fetch");
    }
    (home, places)
}

fn program(file: &Path) {
    fs::write(file, "the user's").expect("written");
    fs::set_permissions(file, Permissions::from_mode(0o755)).expect("the mode is set");
}

#[test]
fn a_toolchain_is_there_once_its_launchers_are() {
    let (_home, places) = home(false);
    assert!(!ZIG.is_there(&places));
    ZIG.install(&places).expect("nothing to fetch");
    assert!(ZIG.is_there(&places));
    fs::remove_file(places.launchers.join("zig")).expect("made");
    assert!(!ZIG.is_there(&places));
}

#[test]
fn launchers_without_their_toolchain_are_not_enough() {
    let (_home, places) = home(true);
    fs::remove_dir_all(ZIG.folder(&places)).expect("made");
    assert!(!ZIG.is_there(&places));
}

#[test]
fn a_launcher_runs_its_command_with_its_arguments() {
    let (_home, places) = home(true);
    let output =
        std::process::Command::new(places.launchers.join("zig")).args(["a b", "c"]).output();
    let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
    assert_eq!(said, format!("{}/zig a b c\n", ZIG.folder(&places).display()));
}

#[test]
fn a_folder_may_have_a_quote_in_its_name() {
    let (home, mut places) = home(false);
    places.toolchains = home.path().join("it's here");
    fs::create_dir_all(ZIG.folder(&places)).expect("a folder");
    ZIG.install(&places).expect("nothing to fetch");
    let output = std::process::Command::new(places.launchers.join("zig")).output();
    let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
    assert_eq!(said, format!("{}/zig\n", ZIG.folder(&places).display()));
}

#[test]
fn a_program_of_the_users_is_taken_for_the_toolchain() {
    let (_home, places) = home(false);
    program(&places.path[0].join("zig"));
    assert!(ZIG.is_there(&places));
}

#[test]
fn a_file_that_may_not_be_run_is_no_toolchain() {
    let (_home, places) = home(false);
    fs::write(places.path[0].join("zig"), "notes on Zig").expect("written");
    assert!(!ZIG.is_there(&places));
}

#[test]
fn a_program_of_the_users_is_never_written_over() {
    let (_home, places) = home(true);
    let file = places.launchers.join("zig");
    fs::remove_file(&file).expect("made");
    program(&file);
    assert!(ZIG.is_there(&places));
    let failure = ZIG.install(&places).expect_err("the user's");
    assert_eq!(failure.to_string(), format!("{}: not made by us", file.display()));
    assert_eq!(fs::read_to_string(&file).expect("there"), "the user's");
}

#[test]
fn a_link_of_the_users_is_never_led_elsewhere() {
    let (home, places) = home(true);
    let file = places.launchers.join("zig");
    fs::remove_file(&file).expect("made");
    std::os::unix::fs::symlink(home.path().join("nowhere"), &file).expect("linked");
    assert!(ZIG.install(&places).is_err());
    assert_eq!(fs::read_link(&file).expect("a link"), home.path().join("nowhere"));
}

#[test]
fn a_launcher_of_an_older_version_is_made_anew() {
    let (_home, places) = home(true);
    let newer = Toolchain { version: "2.0", ..ZIG };
    fs::create_dir_all(newer.folder(&places)).expect("a folder");
    assert!(!newer.is_there(&places));
    newer.install(&places).expect("nothing to fetch");
    assert!(newer.is_there(&places));
}

#[test]
fn every_launcher_of_what_is_fetched_leads_into_its_folder() {
    for toolchain in FETCHED {
        assert!(toolchain.command.contains("'{folder}/"), "{}", toolchain.program);
    }
}
