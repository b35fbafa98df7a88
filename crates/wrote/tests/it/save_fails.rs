//! Tests of saves that the real kernel refuses: the error is clear, the old file is intact, and no
//! other file is left.

use fixtures::{Mounted, leave_room_for, or_skip, run, skip_here};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wrote::{Writer, write, write_unflushed};

const MIB: usize = 1 << 20;

/// Lengths for which there is no room: one is saved through the page cache, and one bypasses it.
const TOO_LONG: [usize; 2] = [3 * MIB, 40 * MIB];

/// The environment variable with the folder, for a test that runs itself again in another process.
const FOLDER: &str = "WROTE_TEST_FOLDER";

/// Creates an old file. Returns its path, and the number of names in its folder.
fn old_file(folder: &Path) -> (PathBuf, usize) {
    let path = folder.join("file");
    write(&path, b"old").unwrap();
    (path, fs::read_dir(folder).unwrap().count())
}

fn is_untouched(path: &Path, names: usize) {
    assert_eq!(fs::read(path).unwrap(), b"old");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), names);
}

/// Asserts that content for which there is no room is refused with this error, by every method of
/// saving.
fn too_long_is_refused(folder: &Path, errno: i32) {
    let (path, names) = old_file(folder);
    for len in TOO_LONG {
        for save in [write, write_unflushed] {
            let error = save(&path, vec![7; len]).unwrap_err();
            assert_eq!(error.errno(), errno, "{error}");
            assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
            is_untouched(&path, names);
        }
    }
    // Room becomes available once the journal and the ring, which closes in the background, have
    // released the removed file.
    let patience = Instant::now() + Duration::from_secs(120);
    while let Err(error) = write(&path, b"new") {
        assert!(error.errno() == errno && Instant::now() < patience, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn a_full_file_system() {
    for mounted in [Mounted::image("ext4", 16 << 20), Mounted::tmpfs(16 << 20)] {
        let mounted = or_skip!(mounted);
        leave_room_for(mounted.path(), 2 << 20);
        too_long_is_refused(mounted.path(), libc::ENOSPC);
    }
}

#[test]
fn a_quota_that_is_used_up() {
    let mounted = or_skip!(Mounted::image("btrfs", 256 << 20));
    // Btrfs applies quotas per subvolume (`btrfs-quota(8)`).
    let folder = mounted.path().join("folder");
    for words in [&["subvolume", "create"][..], &["quota", "enable"], &["qgroup", "limit", "2M"]] {
        let words = words.iter().map(AsRef::as_ref);
        let arguments: Vec<&OsStr> = words.chain([folder.as_os_str()]).collect();
        or_skip!(run("btrfs", &arguments));
    }
    too_long_is_refused(&folder, libc::EDQUOT);
    // A reservation beyond the quota fails before anything is written.
    let hint = Writer::options().size_hint(1 << 40).open(folder.join("hint"));
    assert!([libc::EDQUOT, libc::ENOSPC].contains(&hint.unwrap_err().errno()));
}

#[test]
fn a_file_system_that_is_read_only() {
    let mounted = or_skip!(Mounted::image("ext4", 16 << 20));
    let (path, names) = old_file(mounted.path());
    or_skip!(mounted.make_read_only());
    assert_eq!(write(&path, b"new").unwrap_err().errno(), libc::EROFS);
    is_untouched(&path, names);
}

#[test]
fn a_file_that_is_a_mount_point() {
    let mounted = or_skip!(Mounted::tmpfs(1 << 20));
    let (path, names) = old_file(mounted.path());
    or_skip!(run("mount", &["--bind".as_ref(), path.as_os_str(), path.as_os_str()]));
    let result = write(&path, b"new");
    run("umount", &[path.as_os_str()]).unwrap();
    assert_eq!(result.unwrap_err().errno(), libc::EBUSY);
    is_untouched(&path, names);
}

#[test]
fn a_folder_that_is_not_there_is_named_by_the_path_that_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/file");
    let error = write(&path, b"x").unwrap_err();
    let expected = format!("{}: open: No such file or directory (os error 2)", path.display());
    assert_eq!(error.to_string(), expected);
    assert_eq!(write("", b"x").unwrap_err().errno(), libc::ENOENT);
    write(folder.path().join("file/"), b"x").unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_vanished() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let open = File::open(&gone).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}/file", open.as_raw_fd()));
    write(&path, b"while it is there").unwrap();
    fs::remove_dir_all(&gone).unwrap();
    assert_eq!(write(&path, b"x").unwrap_err().errno(), libc::ENOENT);
}

#[test]
fn a_folder_that_vanishes_meanwhile_is_an_error_or_in_time() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let place = folder.path().join(round.to_string());
        fs::create_dir(&place).unwrap();
        std::thread::scope(|scope| {
            // The removal fails if a name is created at the same time.
            scope.spawn(|| while fs::remove_dir_all(&place).is_err() && place.exists() {});
            for _ in 0..20 {
                match write_unflushed(place.join("file"), b"x") {
                    Ok(()) => {}
                    Err(error) => assert_eq!(error.errno(), libc::ENOENT, "{error}"),
                }
            }
        });
    }
}

/// Runs this test again in another process, started by `command`, in a folder that every user may
/// change. Returns the reason if it cannot run.
fn again(test: &str, folder: &TempDir, command: impl Fn(&Path) -> Command) -> Result<(), String> {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Other users may have no access to the build folder. The program is copied by `cp`, because a
    // child of another test could briefly inherit a file that is opened for writing here, and such
    // a file cannot be executed.
    let program = folder.path().join("program");
    run("cp", &[&std::env::current_exe().unwrap(), &program])?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    // The path is relative, because other users may be unable to reach the folder by its absolute
    // path.
    let output = command(Path::new("./program"))
        .args(fixtures::alone(module_path!(), test))
        .current_dir(folder)
        .env(FOLDER, "place")
        .env_remove("WROTE_SKIPS_FILE")
        .output()
        .map_err(|error| format!("starting the test again: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
    Ok(())
}

#[test]
fn a_limit_on_the_size_of_files() {
    let test = "a_limit_on_the_size_of_files";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return too_long_is_refused(Path::new(&folder), libc::EFBIG);
    }
    let folder = tempfile::tempdir().unwrap();
    // RLIMIT_FSIZE is in units of 512 or 1024 bytes. The signal that would accompany the error is
    // ignored.
    let limited = |program: &Path| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 1000 && exec \"$0\" \"$@\""]).arg(program);
        shell
    };
    or_skip!(again(test, &folder, limited));
}

#[test]
fn a_user_who_may_not_write_the_file_or_not_give_it_away() {
    let test = "a_user_who_may_not_write_the_file_or_not_give_it_away";
    if let Some(folder) = std::env::var_os(FOLDER) {
        return as_nobody(Path::new(&folder));
    }
    if !rustix::process::geteuid().is_root() {
        return skip_here!("not root");
    }
    let folder = tempfile::tempdir().unwrap();
    let nobody = |program: &Path| {
        let place = folder.path().join("place");
        for (name, mode) in [("read-only", 0o644), ("open", 0o6646), ("secret", 0o662)] {
            fs::write(place.join(name), b"old").unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(place.join("closed")).unwrap();
        fs::set_permissions(place.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.join("closed/file"), b"old").unwrap();
        let bits = fs::Permissions::from_mode(0o666);
        fs::set_permissions(place.join("closed/file"), bits).unwrap();
        // Unlike `Command::uid`, this changes the user after the working directory.
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    };
    or_skip!(again(test, &folder, nobody));
}

/// Saves as an unprivileged user in a folder where root has prepared some files.
fn as_nobody(place: &Path) {
    let found = |name: &str| {
        let metadata = fs::metadata(place.join(name)).unwrap();
        (metadata.uid(), metadata.mode() & 0o7777)
    };
    let names = || fs::read_dir(place).unwrap().count();
    let before = names();

    // A rename would not check the file's permissions.
    assert_eq!(write(place.join("read-only"), b"new").unwrap_err().errno(), libc::EACCES);
    assert_eq!(
        (fs::read(place.join("read-only")).unwrap(), found("read-only")),
        (b"old".into(), (0, 0o644))
    );
    let error = write(place.join("closed/file"), b"new").unwrap_err().to_string();
    let closed = place.join("closed");
    let words = "make a file in it: Permission denied (os error 13)";
    assert_eq!(error, format!("{}: {words}", closed.display()));
    assert_eq!(fs::read(place.join("closed/file")).unwrap(), b"old");

    // This user can set neither the owner nor the group: the file loses its setuid and setgid bits,
    // and its new group gets the permissions of other users.
    write(place.join("open"), b"new").unwrap();
    assert_eq!(
        (fs::read(place.join("open")).unwrap(), found("open")),
        (b"new".into(), (65534, 0o666))
    );
    // Other users may write this file but not read it.
    write(place.join("secret"), b"new").unwrap();
    assert_eq!(found("secret"), (65534, 0o622));

    for (mode, may) in [(0o200, true), (0o4755, true), (0o444, false)] {
        let path = place.join("mine");
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(write(&path, b"new").is_ok(), may, "{mode:o}");
        assert_eq!(found("mine"), (65534, mode));
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(names(), before);
}

#[test]
fn a_path_that_no_file_can_have_is_told_with_the_kernels_number() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    fs::write(&old, b"old").unwrap();
    for (path, wanted) in [("", libc::ENOENT), ("a\0b", libc::EINVAL)] {
        let errors = [
            write(path, b"new").unwrap_err(),
            wrote::write_new(path, b"new").unwrap_err(),
            wrote::read(path).unwrap_err(),
            wrote::copy(&old, path).unwrap_err(),
            wrote::copy(path, &old).unwrap_err(),
            Writer::create(path).unwrap_err(),
            Writer::replace(path).unwrap_err(),
        ];
        for (number, error) in errors.iter().enumerate() {
            assert_eq!(error.errno(), wanted, "{number}: {error}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_relative_path_is_of_the_working_folder() {
    let test = "a_relative_path_is_of_the_working_folder";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = &std::path::absolute(folder).unwrap();
        std::env::set_current_dir(folder).unwrap();
        for path in ["file", "./file", "../place/file"] {
            write(path, path).unwrap();
            assert_eq!(fs::read(folder.join("file")).unwrap(), path.as_bytes());
        }
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    or_skip!(again(test, &folder, |program| Command::new(program)));
}
