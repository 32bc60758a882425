//! Memory that is not used any more.

/// Gives what was freed back to the kernel: what stays mapped is copied, page table by page table, at every fork.
pub fn give_back() {
    // SAFETY: malloc_trim takes a number and changes nothing that anybody still holds.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}
