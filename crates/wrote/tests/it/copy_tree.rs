//! Copies of folders: every tree is copied whole, or not at all.

use fixtures::{Mounted, folder, names, or_skip, skip_here};
use libc::{EIO, ENOSPC};
use proptest::prelude::*;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wrote::copy::FOLDERS_DEEP_MAX;
use wrote::engine::Fault;
use wrote::{CopyOptions, Error, Reflink, Sim};

const QUICK: CopyOptions<'static> = CopyOptions::new()
    .reflink(Reflink::Auto)
    .replace(false)
    .durable(false)
    .verify(false)
    .bs_bytes(64 << 10)
    .iodepth(4);

/// Lists the facts that a tree and its copy must share.
fn listed(root: &Path) -> Vec<String> {
    let mut list = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                format!("-> {:?}", fs::read_link(&path).unwrap())
            } else if metadata.is_file() {
                format!("{:?}", fs::read(&path).unwrap())
            } else {
                folders.push(path.clone());
                "folder".into()
            };
            let name = path.strip_prefix(root).unwrap().display();
            let time = (metadata.mtime(), metadata.mtime_nsec());
            list.push(format!("{name} {:o} {time:?} {content}", metadata.mode()));
        }
    }
    list.sort();
    list
}

#[derive(Clone, Debug)]
enum Thing {
    File { len: usize, hole: bool, mode: u32 },
    Link(String),
    Folder(Vec<(String, Thing)>),
}

fn thing() -> impl Strategy<Value = Thing> {
    let lens = prop_oneof![Just(0), 1..300_usize, 4000..9000_usize, 200_000..400_000_usize];
    let file = (lens, any::<bool>(), 0..0o1000_u32).prop_map(|(len, hole, mode)| Thing::File {
        len,
        hole,
        mode: mode | 0o400,
    });
    let leaf = prop_oneof![3 => file, 1 => "[a-z./]{1,9}".prop_map(Thing::Link)];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop::collection::btree_map("[a-z]{1,6}", inner, 0..5)
            .prop_map(|things| Thing::Folder(things.into_iter().collect()))
    })
}

fn make(path: &Path, thing: &Thing) {
    match thing {
        Thing::File { len, hole, mode } => {
            let file = File::create(path).unwrap();
            let start = if *hole { len / 2 } else { 0 };
            let bytes: Vec<u8> = (start..*len).map(|place| (place / 3 + 1) as u8).collect();
            file.write_all_at(&bytes, start as u64).unwrap();
            file.set_permissions(Permissions::from_mode(*mode)).unwrap();
        }
        Thing::Link(to) => symlink(to, path).unwrap(),
        Thing::Folder(things) => {
            fs::create_dir(path).unwrap();
            things.iter().for_each(|(name, thing)| make(&path.join(name), thing));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_copied_tree_is_the_same_tree(
        things in prop::collection::btree_map("[a-z]{1,6}", thing(), 0..6),
        verify in any::<bool>(),
    ) {
        let folder = folder();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        make(&from, &Thing::Folder(things.into_iter().collect()));
        let copied = QUICK.verify(verify).copy_tree(&from, &to).unwrap();
        prop_assert_eq!(listed(&to), listed(&from));
        let counted = copied.files + copied.folders + copied.links;
        prop_assert_eq!(counted as usize, listed(&from).len() + 1);
        prop_assert_eq!(names(folder.path()), ["from", "to"]);
        // Onto itself: every file is replaced by an equal one.
        let copied = QUICK.verify(verify).replace(true).copy_tree(&from, &to).unwrap();
        prop_assert_eq!(copied.folders, 0);
        let without_times = |root: &Path| -> Vec<String> {
            listed(root).into_iter().filter(|line| !line.ends_with(" folder")).collect()
        };
        prop_assert_eq!(without_times(&to), without_times(&from));
    }
}

/// Creates a tree with files before, in and after a folder without write permission.
fn some_tree(folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("closed/inner")).unwrap();
    for name in ["one", "two", "closed/three", "closed/inner/four"] {
        fs::write(tree.join(name), vec![b'x'; 300_000]).unwrap();
    }
    symlink("one", tree.join("link")).unwrap();
    for name in ["closed/inner", "closed"] {
        fs::set_permissions(tree.join(name), Permissions::from_mode(0o555)).unwrap();
    }
    tree
}

#[test]
fn a_copy_that_is_stopped_at_any_moment_leaves_nothing() {
    let folder = folder();
    let tree = some_tree(folder.path());
    let to = folder.path().join("to");
    for most in 0.. {
        let mut asked = 0;
        let result = QUICK
            .watch(&mut |progress| {
                asked += 1;
                assert!(progress.bytes_total.is_none_or(|total| progress.bytes_done <= total));
                if asked > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .copy_tree(&tree, &to);
        match result {
            Err(Error::Interrupted) => assert_eq!(names(folder.path()), ["tree"], "{most}"),
            Ok(_) => {
                assert!(most > 20, "it was asked {most} times");
                assert_eq!(listed(&to), listed(&tree));
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Makes a tree with folders of many small files, some of them with a hole, read-only, long or
/// empty.
fn many_small_files(folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    for number in 0..600_usize {
        let inside = tree.join(format!("{}", number % 7));
        fs::create_dir_all(&inside).unwrap();
        let (len, hole) = match number % 50 {
            0 => (0, false),
            1 => (100_000, false),
            2 => (50_000, true),
            _ => (number * 7, false),
        };
        let mode = if number % 3 == 0 { 0o444 } else { 0o640 };
        make(&inside.join(number.to_string()), &Thing::File { len, hole, mode });
    }
    tree
}

#[test]
fn many_small_files_arrive_whole_and_are_counted() {
    let folder = folder();
    let tree = many_small_files(folder.path());
    let to = folder.path().join("to");
    let mut done = 0;
    let copied = QUICK
        .watch(&mut |progress| {
            assert!(progress.bytes_done >= done, "it goes back");
            done = progress.bytes_done;
            ControlFlow::Continue(())
        })
        .copy_tree(&tree, &to)
        .unwrap();
    assert_eq!(listed(&to), listed(&tree));
    assert_eq!((copied.files, copied.folders), (600, 8));
    let bytes: u64 = (0..7)
        .flat_map(|number| fs::read_dir(tree.join(number.to_string())).unwrap())
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!((copied.bytes, done), (bytes, bytes));
}

#[test]
fn many_small_files_that_are_stopped_at_any_moment_leave_nothing() {
    let folder = folder();
    let tree = many_small_files(folder.path());
    let to = folder.path().join("to");
    // The first walk also reports each file.
    for most in (0..1400).step_by(37) {
        let mut asked = 0;
        let result = QUICK
            .watch(&mut |_| {
                asked += 1;
                if asked > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .copy_tree(&tree, &to);
        match result {
            Err(Error::Interrupted) => assert_eq!(names(folder.path()), ["tree"], "{most}"),
            Ok(_) => {
                assert!(most > 1200, "it was asked {most} times");
                fs::remove_dir_all(&to).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn many_small_files_on_a_full_disk_leave_nothing_and_the_error_names_the_place() {
    let mounted = or_skip!(Mounted::image("ext4", 64 << 20));
    let folder = folder();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let content = vec![7; 60 << 10];
    (0..1100).for_each(|number| fs::write(tree.join(number.to_string()), &content).unwrap());
    let before = names(mounted.path());
    let to = mounted.path().join("to");
    let error = QUICK.copy_tree(&tree, &to).unwrap_err();
    assert_eq!(error.errno(), ENOSPC, "{error}");
    assert!(error.path().is_some_and(|path| path.starts_with(&to)), "{error}");
    assert_eq!(names(mounted.path()), before);
}

#[test]
fn small_files_share_blocks_where_the_file_system_can() {
    for fs_name in ["xfs", "btrfs"] {
        let mounted = or_skip!(Mounted::image(fs_name, 400 << 20));
        let tree = many_small_files(mounted.path());
        let to = mounted.path().join("to");
        let copied = QUICK.durable(true).copy_tree(&tree, &to).unwrap();
        assert_eq!(listed(&to), listed(&tree), "{fs_name}");
        assert!(copied.methods.contains(&wrote::copy::Method::Reflink), "{:?}", copied.methods);
        let copied = QUICK.reflink(Reflink::Never).copy_tree(&tree, mounted.path().join("bytes"));
        assert!(!copied.unwrap().methods.contains(&wrote::copy::Method::Reflink), "{fs_name}");
    }
}

#[test]
fn attributes_of_a_read_only_small_file_are_kept() {
    let folder = folder();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("one"), b"one").unwrap();
    let attribute = |path: &Path| {
        let mut value = [0; 8];
        let len = rustix::fs::getxattr(path, "user.colour", &mut value[..])?;
        Ok::<_, rustix::io::Errno>(value[..len].to_vec())
    };
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(tree.join("one"), "user.colour", b"red", flags).is_err() {
        return skip_here!("the file system has no attributes");
    }
    fs::set_permissions(tree.join("one"), Permissions::from_mode(0o444)).unwrap();
    let to = folder.path().join("to");
    QUICK.copy_tree(&tree, &to).unwrap();
    assert_eq!(attribute(&to.join("one")).unwrap(), b"red");
    assert_eq!(listed(&to), listed(&tree));
}

#[test]
fn an_entry_that_vanishes_is_an_error_that_names_it_and_leaves_nothing() {
    let folder = folder();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("one"), b"one").unwrap();
    let mut asked = 0;
    let result = QUICK
        .watch(&mut |progress| {
            // After the count it is called before the folder, and then before the file.
            asked += usize::from(progress.bytes_total.is_some());
            if asked == 2 {
                fs::remove_file(tree.join("one")).unwrap();
            }
            ControlFlow::Continue(())
        })
        .copy_tree(&tree, folder.path().join("to"));
    let error = result.unwrap_err().to_string();
    assert!(error.ends_with("tree/one: open: No such file or directory (os error 2)"), "{error}");
    assert_eq!(names(folder.path()), ["tree"]);
}

#[test]
fn a_copy_that_keeps_going_lists_what_vanished_and_has_the_rest() {
    let all = ["inner", "link", "one", "two"];
    for verify in [false, true] {
        let folder = folder();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("inner")).unwrap();
        symlink("one", tree.join("link")).unwrap();
        fs::write(tree.join("one"), b"one").unwrap();
        fs::write(tree.join("two"), b"two").unwrap();
        let mut asked = 0;
        let mut watch = |progress: wrote::Progress| {
            // Called before the folder, and then before the first entry: all names are read then.
            asked += usize::from(progress.bytes_total.is_some());
            if asked == 2 {
                fs::remove_dir(tree.join("inner")).unwrap();
                for name in ["link", "one", "two"] {
                    fs::remove_file(tree.join(name)).unwrap();
                }
                fs::write(tree.join("later"), b"later").unwrap();
            }
            ControlFlow::Continue(())
        };
        let options = QUICK.verify(verify).keep_going(true).watch(&mut watch);
        let copied = options.copy_tree(&tree, folder.path().join("to")).unwrap();
        assert_eq!(copied.failed_count, copied.failed.len() as u64);
        let mut found = names(&folder.path().join("to"));
        found.retain(|name| name != "later");
        // The walk may have entered the inner folder before.
        assert!(found.iter().all(|name| name == "inner"), "{found:?}");
        let failed = copied.failed.iter().map(|error| {
            assert_eq!(error.errno(), 2, "{error}");
            let path = error.path().unwrap();
            path.strip_prefix(&tree).unwrap().to_str().unwrap().to_owned()
        });
        let mut named: Vec<String> = failed.chain(found).collect();
        named.sort();
        named.dedup();
        assert_eq!(named, all);
    }
}

#[test]
fn folders_are_merged_without_replacing_anything() {
    // W7
    let folder = folder();
    let tree = folder.path().join("tree");
    let to = folder.path().join("to");
    fs::create_dir_all(tree.join("both")).unwrap();
    fs::create_dir_all(to.join("both")).unwrap();
    fs::write(tree.join("both/new"), b"new").unwrap();
    fs::write(to.join("both/theirs"), b"theirs").unwrap();
    let merge = || QUICK.merge(true);
    merge().copy_tree(&tree, &to).unwrap();
    assert_eq!(names(&to.join("both")), ["new", "theirs"]);
    // Existing files are found before anything is created.
    fs::write(tree.join("another"), b"another").unwrap();
    let error = merge().copy_tree(&tree, &to).unwrap_err();
    assert_eq!((error.errno(), error.path()), (libc::EEXIST, Some(&*to.join("both/new"))));
    assert_eq!(names(&to), ["both"]);
}

#[test]
fn owners_of_a_tree_come_along_with_preserve() {
    let test = "owners_of_a_tree_come_along_with_preserve";
    if !rustix::process::geteuid().is_root() {
        return fixtures::skip(test, "not root");
    }
    let folder = folder();
    let tree = some_tree(folder.path());
    let owned = |path: &Path| {
        let metadata = fs::symlink_metadata(path).unwrap();
        (metadata.uid(), metadata.gid())
    };
    for (number, name) in [(0, ""), (1, "one"), (2, "link"), (3, "closed")] {
        let path = if name.is_empty() { tree.clone() } else { tree.join(name) };
        std::os::unix::fs::lchown(path, Some(1500 + number), Some(1600)).unwrap();
    }
    // A new folder, and an existing one.
    fs::create_dir(folder.path().join("there")).unwrap();
    for to in ["to", "there"] {
        let to = folder.path().join(to);
        QUICK.preserve(true).replace(true).copy_tree(&tree, &to).unwrap();
        assert_eq!(listed(&to), listed(&tree));
        for name in ["one", "link", "closed", "."] {
            assert_eq!(owned(&to.join(name)), owned(&tree.join(name)), "{name}");
        }
        assert_eq!(owned(&to), owned(&tree));
    }
}

#[test]
fn an_error_is_told_of_the_place_that_was_named() {
    let folder = folder();
    let tree = folder.path().join("tree");
    // A path may have 4095 bytes: the source's just fits, the longer one of the copy does not.
    let mut deep = tree.clone();
    while deep.as_os_str().len() < 4000 {
        deep.push("d".repeat((4000 - deep.as_os_str().len()).min(200)));
    }
    fs::create_dir_all(&deep).unwrap();
    let to = folder.path().join("t".repeat(200));
    let error = QUICK.copy_tree(&tree, &to).unwrap_err();
    assert_eq!(error.errno(), 36, "ENAMETOOLONG: {error}");
    assert!(error.to_string().starts_with(to.to_str().unwrap()), "{error}");
    assert_eq!(names(folder.path()), ["tree"]);
}

#[test]
fn what_is_in_the_way_is_found_before_anything_is_replaced() {
    // W7
    let folder = folder();
    let tree = some_tree(folder.path());
    for (name, there) in
        [("one", "folder"), ("closed", "file"), ("link", "folder"), ("two", "link")]
    {
        let to = folder.path().join("to");
        fs::create_dir(&to).unwrap();
        match there {
            "folder" => fs::create_dir(to.join(name)).unwrap(),
            "file" => fs::write(to.join(name), b"precious").unwrap(),
            _ => symlink("elsewhere", to.join(name)).unwrap(),
        }
        let before = listed(&to);
        let error = QUICK.replace(true).copy_tree(&tree, &to).unwrap_err();
        assert!(matches!(&error, Error::Refused { path, .. } if *path == to.join(name)), "{error}");
        assert_eq!(listed(&to), before);
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn a_new_folder_in_one_that_is_there_appears_when_it_is_whole() {
    let folder = folder();
    let tree = some_tree(folder.path());
    let to = folder.path().join("to");
    fs::create_dir(&to).unwrap();
    let options = QUICK.replace(true).durable(true);
    options
        .watch(&mut |_| {
            let closed = to.join("closed");
            assert!(!closed.exists() || listed(&closed) == listed(&tree.join("closed")));
            ControlFlow::Continue(())
        })
        .copy_tree(&tree, &to)
        .unwrap();
    assert_eq!(names(&to), ["closed", "link", "one", "two"]);
}

#[test]
fn a_tree_that_is_too_deep_is_refused_before_anything_is_made() {
    // W8
    let folder = folder();
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("d/".repeat(FOLDERS_DEEP_MAX - 1))).unwrap();
    QUICK.copy_tree(&tree, folder.path().join("copy")).unwrap();
    fs::create_dir_all(tree.join("d/".repeat(FOLDERS_DEEP_MAX))).unwrap();
    let error = QUICK.copy_tree(&tree, folder.path().join("to")).unwrap_err();
    assert!(error.to_string().ends_with("lies in more than 512 folders"), "{error}");
    assert_eq!(names(folder.path()), ["copy", "tree"]);
}

#[test]
fn a_folder_is_not_copied_into_itself_by_whatever_name() {
    let folder = folder();
    let tree = some_tree(folder.path());
    symlink("tree/closed", folder.path().join("inside")).unwrap();
    for to in ["tree/new", "inside/new", "tree/closed/../new"] {
        let error = QUICK.copy_tree(&tree, folder.path().join(to)).unwrap_err();
        assert!(
            error.to_string().ends_with("is inside the folder that is to be copied"),
            "{error}"
        );
    }
    symlink("tree", folder.path().join("same")).unwrap();
    let replace = QUICK.replace(true);
    let error = replace.copy_tree(&tree, folder.path().join("same")).unwrap_err();
    assert!(error.to_string().ends_with("is the folder that is to be copied"), "{error}");
}

#[test]
fn a_file_with_two_names_becomes_two_files() {
    let folder = folder();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), b"one").unwrap();
    fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
    let to = folder.path().join("to");
    QUICK.copy_tree(&tree, &to).unwrap();
    let inode = |name: &str| fs::metadata(to.join(name)).unwrap().ino();
    assert_ne!(inode("a"), inode("b"));
}

#[test]
fn a_durable_tree_and_one_in_memory_are_copied_too() {
    let folder = folder();
    let tree = some_tree(folder.path());
    QUICK.durable(true).copy_tree(&tree, folder.path().join("to")).unwrap();
    assert_eq!(listed(&folder.path().join("to")), listed(&tree));
    let Ok(memory) = TempDir::with_prefix_in("wrote-test-", "/dev/shm") else {
        return skip_here!("there is no /dev/shm");
    };
    // If `syncfs` may not flush the device, each file is flushed by itself.
    let copied = QUICK.durable(true).copy_tree(&tree, memory.path().join("to")).unwrap();
    assert_eq!(copied.files, 4);
    assert_eq!(listed(&memory.path().join("to")), listed(&tree));
}

/// Returns a pipe that delivers the bytes.
fn pipe_of(bytes: Vec<u8>) -> io::PipeReader {
    let (reader, mut writer) = io::pipe().unwrap();
    std::thread::spawn(move || {
        // If the copy fails, the reader is gone.
        let _ = writer.write_all(&bytes);
    });
    reader
}

#[test]
fn a_stream_leaves_all_or_nothing_whatever_fails() {
    let content: Vec<u8> = (0..5 * 4096 + 700).map(|place| (place / 7 + 1) as u8).collect();
    let to = Path::new("/sim/to");
    for fault in [Fault::Once(EIO), Fault::Forever(EIO), Fault::Forever(ENOSPC), Fault::Short(512)]
    {
        for number in 0.. {
            let sim = Sim::new(number);
            sim.fault(number, fault);
            let disk = sim.disk();
            let options = QUICK.durable(true).verify(true).bs_bytes(4096).iodepth(3);
            let pipe = pipe_of(content.clone());
            let copied = options.on(&disk).copy_in(pipe.as_fd(), to);
            assert_eq!(disk.outstanding(), 0, "W5");
            match &copied {
                Ok(_) => {
                    assert_eq!(sim.after_power_loss(to), Some(content.clone()), "{fault:?}");
                    assert_eq!(sim.names(), [to]);
                }
                // The last step, flushing the folder, comes after the name.
                Err(_) if sim.names() == [to] => {
                    assert_eq!(sim.contents(to), Some(content.clone()))
                }
                // A disk that fails forever keeps the temporary file.
                Err(error) => {
                    assert!(sim.contents(to).is_none(), "{fault:?} {number}");
                    assert!(!error.to_string().contains(".wrote-"), "{error}");
                    assert!(fault != Fault::Once(EIO) || sim.names().is_empty(), "{number}");
                }
            }
            if sim.operations() <= number {
                assert!(copied.is_ok() && number > 10, "{fault:?}: {number}");
                break;
            }
        }
    }
}

#[test]
fn a_stream_that_is_stopped_leaves_nothing() {
    let folder = folder();
    let to = folder.path().join("to");
    let pipe = pipe_of(vec![7; 1 << 20]);
    let mut came = 0;
    let copied = QUICK
        .watch(&mut |progress| {
            assert!(progress.bytes_total.is_none());
            came = progress.bytes_done;
            if came > 500_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .copy_in(pipe.as_fd(), &to);
    assert!(matches!(copied, Err(Error::Interrupted)), "{copied:?}");
    assert!(came > 500_000 && names(folder.path()).is_empty());
}
