//! System calls without anything between.

use std::ffi::{CStr, CString};

/// What a system call returned, or its errno.
pub type Outcome = Result<usize, i32>;

/// A system call by number. Pointers among the arguments must be valid for it or deliberately not: an attack
/// that crashes the probe is a result like any other.
pub fn call(number: libc::c_long, args: &[usize]) -> Outcome {
    let arg = |at: usize| args.get(at).copied().unwrap_or(0);
    // SAFETY: the probe is a hostile program; whatever memory a call touches is its own.
    let returned = unsafe { libc::syscall(number, arg(0), arg(1), arg(2), arg(3), arg(4), arg(5)) };
    if returned == -1 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        Ok(returned.cast_unsigned() as usize)
    }
}

/// The address of a text that lives as long as the process.
pub fn pointer(text: &str) -> usize {
    CString::new(text).unwrap_or_default().into_raw() as usize
}

/// The address of a null-terminated list of texts, as execve(2) takes them.
pub fn list(texts: &[&str]) -> usize {
    let mut pointers: Vec<usize> = texts.iter().map(|text| pointer(text)).collect();
    pointers.push(0);
    pointers.leak().as_ptr() as usize
}

/// The address of bytes that live as long as the process.
pub fn bytes(bytes: Vec<u8>) -> usize {
    bytes.leak().as_ptr() as usize
}

/// Splits the process in two; 0 in the child.
pub fn fork() -> Outcome {
    call(libc::SYS_clone, &[libc::SIGCHLD as usize])
}

/// Waits for a child; its wait status.
pub fn wait(pid: usize) -> Result<i32, i32> {
    let status: &mut i32 = Box::leak(Box::new(0));
    let place = std::ptr::from_mut(status) as usize;
    call(libc::SYS_wait4, &[pid, place, 0, 0]).map(|_| *status)
}

/// Ends without any exit handler.
pub fn exit(code: i32) -> ! {
    // SAFETY: no memory is involved.
    unsafe { libc::_exit(code) }
}

/// Sleeps that many milliseconds.
pub fn sleep(milliseconds: usize) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds as u64));
}

/// An errno by its name, such as `EPERM`.
pub fn name(errno: i32) -> String {
    unsafe extern "C" {
        fn strerrorname_np(errno: libc::c_int) -> *const libc::c_char;
    }
    // SAFETY: glibc takes any number, and returns a static text or null.
    let text = unsafe { strerrorname_np(errno) };
    if text.is_null() {
        return errno.to_string();
    }
    // SAFETY: not null, so a static null-terminated text.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}
