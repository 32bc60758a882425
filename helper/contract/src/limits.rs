#![forbid(unsafe_code)]
//! Every limit of the contract, with its reason. Each is enforced before anything of that size is allocated.

/// Largest packet on the helper's socket, bytes. A `SOCK_SEQPACKET` packet of 212,960 bytes still passes
/// with the kernel's default buffers; this leaves room for the header and the control message.
pub const PACKET: usize = 192 * 1024;
/// Most memory that decoding a packet may ask for, bytes: an empty element takes one byte in the packet and
/// up to 32 in memory. What fits into a packet can be read, and a length that lies ends here.
pub const DECODED: usize = 32 * PACKET;
/// Largest single argument value, bytes: `MAX_ARG_STRLEN` (execve(2)) is 128 KiB with the NUL.
pub const ARGUMENT: usize = 128 * 1024 - 1;
/// Most arguments of one call.
pub const ARGUMENTS: usize = 128;
/// Most elements of one list value.
pub const LIST: usize = 1024;
/// Most elements of one rendered argv; execve(2) would take more, no catalogue needs it.
pub const ARGV: usize = 4096;
/// Most steps of one action: the supervisor forks a child for each before it gives up its privilege.
pub const STEPS: usize = 16;
/// Most actions of one catalogue.
pub const ACTIONS: usize = 20_000;
/// Largest `catalog.json`, bytes: it is read into memory before its signature is checked.
pub const CATALOG: usize = 64 * 1024 * 1024;
/// Largest `tokens.json`, bytes.
pub const TOKENS_FILE: usize = 1024 * 1024;
/// Largest free-form `command`, bytes. Longer ones are refused unread, so a megabyte costs nothing.
pub const COMMAND: usize = 8 * 1024;
/// Longest name of an action, a token, a step or a parameter.
pub const NAME: usize = 64;
/// Longest text of a helper's refusal or an unsupported action's reason, bytes.
pub const DETAIL: usize = 1024;
/// Largest script that an action may carry, bytes.
pub const SCRIPT: usize = 1024 * 1024;

/// Default and highest timeout of an action.
pub const TIMEOUT_DEFAULT_MS: u64 = 30_000;
/// An hour: longer jobs belong to the service manager.
pub const TIMEOUT_MAX_MS: u64 = 3_600_000;
/// Output of all steps together that reaches the client, bytes.
pub const OUTPUT_DEFAULT: u64 = 32 * 1024;
/// Highest `max_output`: a reply is one JSON document in the daemon's memory.
pub const OUTPUT_MAX: u64 = 16 * 1024 * 1024;
/// Raw stdout that is scanned per step, bytes.
pub const SCAN_DEFAULT: u64 = 64 * 1024 * 1024;
/// Highest `max_scan`.
pub const SCAN_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Processes and threads of `run_as` (RLIMIT_NPROC counts per uid).
pub const PROCESSES_DEFAULT: u64 = 128;
/// Highest `limits.processes`.
pub const PROCESSES_MAX: u64 = 4096;
/// Memory of a run where a cgroup is delegated (`memory.max`).
pub const MEMORY_DEFAULT: u64 = 1 << 30;
/// Address space of a process where none is (RLIMIT_AS).
pub const ADDRESS_SPACE_DEFAULT: u64 = 4 << 30;
/// Processor time of a run where a cgroup is delegated (`cpu.max`), in hundredths of one processor: whatever
/// its tree does, the other processors are left.
pub const CPU_PERCENT_DEFAULT: u64 = 100;
/// Highest `limits.cpu_percent`: more processors than any machine has.
pub const CPU_PERCENT_MAX: u64 = 100_000;
/// Largest file a run may write (RLIMIT_FSIZE).
pub const FILE_SIZE_DEFAULT: u64 = 64 * 1024 * 1024;
/// Highest `limits.file_size`.
pub const FILE_SIZE_MAX: u64 = 64 << 30;
/// Smallest `sandbox.private_tmp`: a page. Nothing at all would mean no limit to tmpfs(5).
pub const TEMPORARY_MIN: u64 = 4096;
/// Largest `sandbox.private_tmp`: it is memory, and a run has as much by default.
pub const TEMPORARY_MAX: u64 = MEMORY_DEFAULT;
/// Open descriptors of a process (RLIMIT_NOFILE). The executable sits at exactly this number until it is
/// executed (one-shot exec), so it must be above every declared descriptor.
pub const OPEN_FILES_DEFAULT: u64 = 256;
/// Lowest `limits.open_files`: standard streams, declared descriptors, a few libraries.
pub const OPEN_FILES_MIN: u64 = 16;
/// Highest `limits.open_files`: below the common soft limit of 1024 that a service starts with.
pub const OPEN_FILES_MAX: u64 = 1000;
/// Runs of one action at once.
pub const CONCURRENCY_DEFAULT: u32 = 8;
/// Longest string value where `max_length` is not given, characters.
pub const STRING_LENGTH_DEFAULT: u64 = 1024;
/// Longest path value, bytes: PATH_MAX with its NUL.
pub const PATH_LENGTH: u64 = 4095;
/// Elements of a list value where `max_items` is not given.
pub const ITEMS_DEFAULT: u64 = 64;
/// Compiled size of one parameter pattern, bytes.
pub const PATTERN_SIZE: usize = 1 << 20;
/// Longest pattern of a parameter, characters.
pub const PATTERN_LENGTH: usize = 1000;
