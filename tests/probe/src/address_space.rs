//! Ways to have memory at the lowest page that a process may map.
//!
//! One-shot exec rests on that page: the only `execveat` that the filter lets through takes its path from
//! there, and after the first exec nobody can have memory there. Each attack tries to, and then executes the
//! program given to it with the page as its path. `EEXIST` says that there was memory, and that the exec
//! failed all the same.

use crate::raw::{self, Outcome};
use crate::{exec, number, text};

const READ_WRITE: usize = (libc::PROT_READ | libc::PROT_WRITE) as usize;
const PRIVATE: usize = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
const NO_FILE: usize = usize::MAX;
#[cfg(target_arch = "x86_64")]
const ARCH_MAP_VDSO_64: usize = 0x2003;

/// The attacks of this module.
pub fn attack(subcommand: &str, args: &[&str]) -> Option<Outcome> {
    let page = page_size();
    let low = lowest_page();
    let taken = match subcommand {
        // mmap-low PATH: exactly there.
        "mmap-low" => mmap(low, page, PRIVATE | libc::MAP_FIXED as usize),
        // mmap-low-once PATH: there, if it is free.
        "mmap-low-once" => mmap(low, page, PRIVATE | libc::MAP_FIXED_NOREPLACE as usize),
        // mmap-hint PATH: a hint below it is rounded up to it.
        "mmap-hint" => mmap(page, page, PRIVATE),
        // mmap-below PATH: a mapping that begins lower and covers it.
        "mmap-below" => mmap(low.saturating_sub(page), 4 * page, PRIVATE | libc::MAP_FIXED as usize),
        // mmap-growsdown PATH: a stack above it that grows down when touched.
        "mmap-growsdown" => {
            mmap(low + page, page, PRIVATE | (libc::MAP_FIXED | libc::MAP_GROWSDOWN) as usize)
        }
        // mremap-low PATH: memory moved there.
        "mremap-low" => moved(page, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED),
        // mremap-keep PATH: moved there, the old place kept.
        "mremap-keep" => moved(page, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP),
        // mremap-stack PATH: a page of the stack moved above it, to grow down to it.
        "mremap-stack" => move_stack(low, page),
        // vdso-low PATH: the kernel's own page mapped there.
        #[cfg(target_arch = "x86_64")]
        "vdso-low" => {
            unmap_vdso();
            raw::call(libc::SYS_arch_prctl, &[ARCH_MAP_VDSO_64, low])
        }
        // shmat-low PATH: shared memory attached there.
        "shmat-low" => shmat(page),
        // fill-low PATH: everything else filled, so that the kernel's own choice is there.
        "fill-low" => fill(page),
        // set-mm-low PATH: the map of the process rewritten.
        "set-mm-low" => {
            raw::call(libc::SYS_prctl, &[libc::PR_SET_MM as usize, libc::PR_SET_MM_START_CODE as usize, low])
        }
        // remap-low PATH: pages of a mapping rearranged.
        "remap-low" => raw::call(libc::SYS_remap_file_pages, &[low, page, 0, 0, 0]),
        // mmap ADDRESS LENGTH FLAGS: any mapping.
        "mmap" => return Some(mmap(number(args, 0), number(args, 1), number(args, 2))),
        _ => return None,
    };
    // Tried in any case: what counts is whether memory is there, not what the attempt returned.
    let placed = place(low, text(args, 0));
    let (argv, environment) = (raw::list(&["second"]), raw::list(&[]));
    let flags = libc::AT_EMPTY_PATH as usize;
    let executed = raw::call(libc::SYS_execveat, &[exec::descriptor_limit(), low, argv, environment, flags]);
    let failed = taken.and(placed).and(executed);
    Some(if failed.is_err() && is_mapped(low, page) { Err(libc::EEXIST) } else { failed })
}

fn is_mapped(address: usize, page: usize) -> bool {
    let residence: &mut [u8; 1] = Box::leak(Box::new([0]));
    raw::call(libc::SYS_mincore, &[address, page, residence.as_mut_ptr() as usize]).is_ok()
}

/// The kernel maps its page only where there is none yet. Nothing may ask for the time afterwards.
#[cfg(target_arch = "x86_64")]
fn unmap_vdso() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines().filter(|line| line.ends_with("[vdso]") || line.contains("[vvar")) {
        let bound = |text: &str| usize::from_str_radix(text, 16).ok();
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        if let Some((Some(from), Some(to))) = range.map(|(from, to)| (bound(from), bound(to))) {
            let _ = raw::call(libc::SYS_munmap, &[from, to - from]);
        }
    }
}

/// Writes a path to an address. The kernel writes it, out of a pipe: where there is no memory that is an errno
/// and not a crash, and a stack grows down to meet it.
fn place(address: usize, path: &str) -> Outcome {
    let ends: &mut [i32; 2] = Box::leak(Box::new([0, 0]));
    raw::call(libc::SYS_pipe2, &[ends.as_mut_ptr() as usize, 0])?;
    let [read, write] = ends.map(|end| end.cast_unsigned() as usize);
    let length = path.len() + 1;
    raw::call(libc::SYS_write, &[write, raw::pointer(path), length])?;
    raw::call(libc::SYS_read, &[read, address, length])
}

/// A private mapping.
pub fn mmap(address: usize, length: usize, flags: usize) -> Outcome {
    raw::call(libc::SYS_mmap, &[address, length, READ_WRITE, flags, NO_FILE, 0])
}

fn moved(page: usize, flags: i32) -> Outcome {
    let from = mmap(0, page, PRIVATE)?;
    raw::call(libc::SYS_mremap, &[from, page, page, flags as usize, lowest_page()])
}

/// The lowest page of the stack, which nothing uses, moved: it keeps the property of growing down.
fn move_stack(low: usize, page: usize) -> Outcome {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap_or_default();
    let lowest = line.split('-').next().and_then(|text| usize::from_str_radix(text, 16).ok());
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    raw::call(libc::SYS_mremap, &[lowest.unwrap_or(0), page, page, flags, low + page])
}

fn shmat(page: usize) -> Outcome {
    let id = raw::call(libc::SYS_shmget, &[libc::IPC_PRIVATE as usize, page, 0o600])?;
    let attached = raw::call(libc::SYS_shmat, &[id, lowest_page(), 0]);
    let _ = raw::call(libc::SYS_shmctl, &[id, libc::IPC_RMID as usize, 0]);
    attached
}

/// Maps without touching until nothing more fits below; `Ok` when the kernel gave the lowest page. What it
/// gives above, when there is no room below, is given back: the limit of addresses is for use below.
fn fill(page: usize) -> Outcome {
    let flags = PRIVATE | libc::MAP_NORESERVE as usize;
    let highest = mmap(0, page, flags)?;
    let mut size = 1 << 46;
    while size >= page {
        match mmap(0, size, flags) {
            Ok(place) if place == lowest_page() => return Ok(place),
            Ok(place) if place > highest => {
                raw::call(libc::SYS_munmap, &[place, size])?;
                size /= 2;
            }
            Ok(_) => {}
            Err(errno) if size == page => return Err(errno),
            Err(_) => size /= 2,
        }
    }
    Err(libc::ENOMEM)
}

/// The size of a page.
pub fn page_size() -> usize {
    // SAFETY: no memory is involved.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    size.cast_unsigned() as usize
}

/// `vm.mmap_min_addr`, rounded up to a page.
pub fn lowest_page() -> usize {
    let lowest = std::fs::read_to_string("/proc/sys/vm/mmap_min_addr").unwrap_or_default();
    lowest.trim().parse::<usize>().unwrap_or(65536).next_multiple_of(page_size())
}
