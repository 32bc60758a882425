#![forbid(unsafe_code)]
//! The temporary directory of a run (`sandbox.private_tmp`): a file system in memory that is mounted nowhere.
//!
//! The kernel keeps its size, nobody outside the run has a name for it, and it is gone with the run's last
//! descriptor of it: there is nothing to remove, not even after a crash. Programs find it under the number of
//! their descriptor, in TMPDIR.
//!
//! Making it takes CAP_SYS_ADMIN over a mount namespace, but not over the host's: a maker is forked into a user
//! and a mount namespace of its own, in which the run's account is the only one, hands the directory over by
//! descriptor and ends. No run is ever in such a namespace.

use crate::sys::{descriptors, mount, process};
use nix::sched::CloneFlags;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, write};
use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::io::{self, IoSlice, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

/// A file takes kernel memory beside its content, about a quarter of this: no more files than pages.
const PER_FILE: u64 = 4096;
/// As few as any program needs, and as many as 64 MiB of kernel memory hold.
const FILES: (u64, u64) = (16, 65_536);
/// What the maker says when it has succeeded; anything else is the reason why not.
const MADE: &[u8] = b"made";

/// The account that the host is tried with: nobody's.
const ANYBODY: u32 = 65_534;

/// Whether this host lets the helper make one; an error is the reason why not, and the way out.
///
/// # Errors
/// What failed when it was tried.
pub fn try_host() -> Result<(), String> {
    make(PER_FILE, ANYBODY, ANYBODY).map(drop).map_err(|reason| {
        format!(
            "`private_tmp` needs user namespaces, and making one failed here ({reason}): \
             sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone and RestrictNamespaces= in the \
             helper's unit decide about them"
        )
    })
}

/// Makes one of at most `size` bytes, which belongs to this account.
///
/// # Errors
/// The call that failed, and how.
pub fn make(size: u64, uid: u32, gid: u32) -> Result<OwnedFd, String> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
        .map_err(failed("socketpair"))?;
    let namespaces = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS;
    let maker = match process::fork_into(namespaces).map_err(failed("clone"))? {
        ForkResult::Child => {
            drop(ours);
            serve(&theirs, size, uid, gid);
            process::exit(0)
        }
        ForkResult::Parent { child } => child,
    };
    drop(theirs);
    let made = receive(&ours, maker, uid, gid);
    // A maker that was told nothing ends now.
    drop(ours);
    waitpid(maker, None).map_err(failed("wait4"))?;
    made
}

/// Gives the maker its account, and takes what it has made.
fn receive(ours: &OwnedFd, maker: Pid, uid: u32, gid: u32) -> Result<OwnedFd, String> {
    // No CAP_SETFCAP is needed to name an account other than root (user_namespaces(7)).
    for (map, id) in [("uid_map", uid), ("gid_map", gid)] {
        let file = OpenOptions::new().write(true).open(format!("/proc/{maker}/{map}"));
        file.and_then(|mut file| file.write_all(format!("{id} {id} 1").as_bytes())).map_err(failed(map))?;
    }
    write(ours, b"!").map_err(failed("write"))?;
    let mut packet = [0; 128];
    match descriptors::receive(ours.as_fd(), &mut packet).map_err(failed("recvmsg"))? {
        (_, Some(directory)) if packet.starts_with(MADE) => Ok(directory),
        (0, _) => Err("its maker was ended".to_owned()),
        (length, _) => Err(String::from_utf8_lossy(packet.get(..length).unwrap_or_default()).into_owned()),
    }
}

/// The maker's life: waits for its account, makes the file system and hands it over.
fn serve(theirs: &OwnedFd, size: u64, uid: u32, gid: u32) {
    if !matches!(recv(theirs.as_raw_fd(), &mut [0], MsgFlags::empty()), Ok(1)) {
        return;
    }
    // Nobody is left to hear of a failed answer: the other end is closed then.
    let _ = match build(size, uid, gid) {
        Ok(directory) => {
            let given = [directory.as_raw_fd()];
            let rights = [ControlMessage::ScmRights(&given)];
            sendmsg::<()>(theirs.as_raw_fd(), &[IoSlice::new(MADE)], &rights, MsgFlags::empty(), None)
        }
        Err(reason) => write(theirs, reason.as_bytes()),
    };
}

fn build(size: u64, uid: u32, gid: u32) -> Result<OwnedFd, String> {
    let (fewest, most) = FILES;
    let files = (size / PER_FILE).clamp(fewest, most);
    let file_system = mount::open(c"tmpfs").map_err(failed("fsopen"))?;
    let options: [(&CStr, String); 5] = [
        (c"size", size.to_string()),
        (c"nr_inodes", files.to_string()),
        (c"mode", "0700".to_owned()),
        (c"uid", uid.to_string()),
        (c"gid", gid.to_string()),
    ];
    for (key, value) in options {
        let value = CString::new(value).map_err(failed("fsconfig"))?;
        mount::set(file_system.as_fd(), key, &value).map_err(failed("fsconfig"))?;
    }
    mount::create(file_system.as_fd()).map_err(failed("fsconfig"))?;
    mount::mount(file_system.as_fd()).map_err(failed("fsmount"))
}

fn failed<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{call}: {}", error.into())
}
