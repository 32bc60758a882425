#![forbid(unsafe_code)]
//! Run as root these also try files of somebody else; as anybody they hold for our own files.

use super::*;
use nix::sys::stat::Mode;
use nix::unistd::{Uid, chown, mkfifo};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A directory of our own under `/tmp`, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/tmp/gloveport-trusted-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let directory = Self(path);
        directory.chmod("", 0o755);
        directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        fs::write(self.path(name), "secret").unwrap();
        self.chmod(name, mode);
        self.path(name)
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn problem(path: &Path) -> Problem {
    read(path, 100, true).unwrap_err().problem
}

fn credential_problem(path: &Path) -> Problem {
    read_credential(path, true).unwrap_err().problem
}

#[test]
fn a_file_that_only_its_owner_can_write_is_read() {
    let directory = Directory::new();
    for mode in [0o644, 0o640, 0o600, 0o444] {
        assert_eq!(read(&directory.file("f", mode), 6, true).unwrap(), b"secret");
        fs::remove_file(directory.path("f")).unwrap();
    }
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let directory = Directory::new();
    assert_eq!(problem(&directory.file("g", 0o664)), Problem::Writable(0o664));
    assert_eq!(problem(&directory.file("o", 0o602)), Problem::Writable(0o602));
}

#[test]
fn a_directory_on_the_way_that_others_can_write_is_refused() {
    let directory = Directory::new();
    fs::create_dir_all(directory.path("a/b")).unwrap();
    let file = directory.file("a/b/f", 0o600);
    directory.chmod("a", 0o777);
    let error = read(&file, 100, true).unwrap_err();
    assert_eq!((error.problem, error.path), (Problem::DirectoryWritable(0o777), directory.path("a")));
    directory.chmod("a", 0o1777);
    assert!(read(&file, 100, true).is_ok(), "others cannot rename what is ours in a sticky directory");
}

#[test]
fn what_belongs_to_somebody_else_is_refused_at_every_place() {
    if !Uid::effective().is_root() {
        return;
    }
    let directory = Directory::new();
    let give = |name: &str| chown(&directory.path(name), Some(Uid::from_raw(4711)), None).unwrap();
    let file = directory.file("f", 0o600);
    give("f");
    assert_eq!(problem(&file), Problem::Owner(4711));
    fs::create_dir(directory.path("d")).unwrap();
    let file = directory.file("d/f", 0o600);
    give("d");
    assert_eq!(problem(&file), Problem::DirectoryOwner(4711));
    let target = directory.file("target", 0o600);
    symlink(&target, directory.path("link")).unwrap();
    nix::unistd::fchownat(
        nix::fcntl::AT_FDCWD,
        &directory.path("link"),
        Some(Uid::from_raw(4711)),
        None,
        AtFlags::AT_SYMLINK_NOFOLLOW,
    )
    .unwrap();
    assert_eq!(problem(&directory.path("link")), Problem::LinkOwner(4711));
}

#[test]
fn links_of_our_own_are_followed_through_checked_directories() {
    let directory = Directory::new();
    fs::create_dir_all(directory.path("catalogs/one")).unwrap();
    directory.file("catalogs/one/catalog.json", 0o644);
    symlink("one", directory.path("catalogs/current")).unwrap();
    symlink("./catalogs/../catalogs/current/catalog.json", directory.path("catalog.json")).unwrap();
    symlink(directory.path("catalog.json"), directory.path("absolute")).unwrap();
    assert_eq!(read(&directory.path("catalog.json"), 100, true).unwrap(), b"secret");
    assert_eq!(read(&directory.path("absolute"), 100, true).unwrap(), b"secret");
    directory.chmod("catalogs", 0o775);
    assert_eq!(problem(&directory.path("absolute")), Problem::DirectoryWritable(0o775));
}

#[test]
fn links_that_lead_nowhere_end() {
    let directory = Directory::new();
    symlink("loop", directory.path("loop")).unwrap();
    assert_eq!(problem(&directory.path("loop")), Problem::TooManyLinks);
    symlink("absent", directory.path("dangling")).unwrap();
    assert_eq!(problem(&directory.path("dangling")), Problem::Missing);
    symlink("..", directory.path("up")).unwrap();
    assert_eq!(problem(&directory.path("up")), Problem::NotRegular);
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let directory = Directory::new();
    mkfifo(&directory.path("fifo"), Mode::S_IRUSR).unwrap();
    fs::create_dir(directory.path("directory")).unwrap();
    let started = Instant::now();
    for path in
        [&directory.path("fifo"), &directory.path("directory"), Path::new("/dev/zero"), Path::new("/")]
    {
        assert_eq!(problem(path), Problem::NotRegular, "{}", path.display());
    }
    assert!(started.elapsed().as_millis() < 500);
    assert_eq!(problem(Path::new("etc/passwd")), Problem::Relative);
    assert_eq!(problem(&directory.path("absent")), Problem::Missing);
    assert_eq!(problem(&directory.path("absent/f")), Problem::Missing);
}

#[test]
fn a_file_is_read_up_to_its_limit_and_no_further() {
    let directory = Directory::new();
    let file = directory.file("f", 0o600);
    assert_eq!(read(&file, 6, true).unwrap().len(), 6);
    assert_eq!(read(&file, 5, true).unwrap_err().problem, Problem::TooLarge(5));
    File::create(directory.path("sparse")).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(credential_problem_of_mode(&directory, "sparse"), Problem::TooLarge(CREDENTIAL));
}

fn credential_problem_of_mode(directory: &Directory, name: &str) -> Problem {
    directory.chmod(name, 0o600);
    credential_problem(&directory.path(name))
}

#[test]
fn a_credential_is_for_its_owner_alone() {
    let directory = Directory::new();
    for mode in [0o600, 0o400] {
        assert_eq!(read_credential(&directory.file("c", mode), true).unwrap(), b"secret");
        fs::remove_file(directory.path("c")).unwrap();
    }
    for mode in [0o644, 0o640, 0o602, 0o700, 0o4600] {
        assert_eq!(credential_problem(&directory.file("c", mode)), Problem::CredentialMode(mode));
        directory.chmod("c", 0o600);
    }
}

#[test]
fn a_credential_has_one_name() {
    let directory = Directory::new();
    let file = directory.file("c", 0o600);
    symlink("c", directory.path("link")).unwrap();
    assert_eq!(credential_problem(&directory.path("link")), Problem::Link);
    fs::hard_link(&file, directory.path("second")).unwrap();
    assert_eq!(credential_problem(&file), Problem::CredentialNames);
}

#[test]
fn a_file_of_ours_is_made_for_us_alone() {
    let directory = Directory::new();
    open_own(&directory.path("log"), true, true).unwrap();
    let mode = fs::metadata(directory.path("log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    directory.chmod("log", 0o620);
    assert_eq!(open_own(&directory.path("log"), true, true).unwrap_err().problem, Problem::Writable(0o620));
}

#[test]
fn without_same_user_only_root_counts() {
    let directory = Directory::new();
    let file = directory.file("f", 0o600);
    assert_eq!(read(&file, 100, false).is_ok(), Uid::effective().is_root());
}

#[test]
fn a_credential_that_is_rotated_meanwhile_is_the_old_one_or_the_new_one_whole() {
    let directory = Directory::new();
    let credential = directory.file("credential", 0o600);
    let contents = ["old ".repeat(10_000), "new".repeat(12_000)];
    fs::write(&credential, &contents[0]).unwrap();
    let rotations = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for rotation in 0..2000 {
                let next = directory.file("next", 0o600);
                fs::write(&next, &contents[rotation % 2]).unwrap();
                fs::rename(&next, &credential).unwrap();
                rotations.fetch_add(1, Ordering::Relaxed);
            }
        });
        while rotations.load(Ordering::Relaxed) < 2000 {
            let read = read_credential(&credential, true).unwrap();
            assert!(contents.iter().any(|content| content.as_bytes() == read), "{} bytes", read.len());
        }
    });
}
