#![forbid(unsafe_code)]
//! The answer to `Status`: what is in force, what this kernel has, and what this host cannot run.

use super::Supervisor;
use super::prepare::Preparing;
use super::records::short;
use gloveport_contract::limits;
use gloveport_contract::packet::{Event, Unsupported, VERSION};

/// What a page leaves for everything beside its list, bytes.
const ROOM: usize = 16 * 1024;
/// What the encoding adds to the two texts of an entry, at most.
const ENTRY: usize = 16;

impl Supervisor<'_> {
    /// The page of that number. Support is looked at anew: a program may have been installed since.
    pub(super) fn status(&self, page: u32) -> Event {
        let (unsupported, more) = nth_page(self.unsupported(), page);
        Event::StatusReply {
            version: VERSION,
            digest: self.in_force.map(|in_force| in_force.digest),
            reason: self.reason.map(short),
            layers: self.host.layers(),
            unsupported,
            more,
            runs: self.shared.runs(),
        }
    }

    fn unsupported(&self) -> impl Iterator<Item = Unsupported> {
        self.in_force.into_iter().flat_map(|in_force| {
            let preparing = Preparing { host: self.host, in_force, same_user: self.options.same_user };
            in_force.actions.iter().filter_map(move |action| {
                let reason = preparing.supports(&action).err()?;
                Some(Unsupported { action: action.name, reason: short(&reason) })
            })
        })
    }
}

/// Cuts a list into pages that fit a packet. Yields one page and whether another follows.
fn nth_page(list: impl Iterator<Item = Unsupported>, wanted: u32) -> (Vec<Unsupported>, bool) {
    let (mut page, mut used) = (0, 0);
    let mut entries = Vec::new();
    for entry in list {
        let size = entry.action.len() + entry.reason.len() + ENTRY;
        if used + size > limits::PACKET - ROOM {
            if page == wanted {
                return (entries, true);
            }
            (page, used) = (page + 1, 0);
        }
        used += size;
        if page == wanted {
            entries.push(entry);
        }
    }
    (entries, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_every_entry_once_and_fit_a_packet() {
        let all: Vec<Unsupported> = (0..20_000)
            .map(|n| Unsupported { action: format!("action_{n:05}"), reason: "x".repeat(n % 1024) })
            .collect();
        let mut seen = Vec::new();
        for page in 0.. {
            let (entries, more) = nth_page(all.iter().cloned(), page);
            let event = Event::StatusReply {
                version: VERSION,
                digest: Some([0; 32]),
                reason: Some("x".repeat(limits::DETAIL)),
                layers: Vec::new(),
                unsupported: entries.clone(),
                more,
                runs: 0,
            };
            assert!(event.encode().is_ok());
            seen.extend(entries);
            if !more {
                break;
            }
        }
        assert_eq!(seen, all);
        assert_eq!(nth_page(all.into_iter().take(3), 1), (Vec::new(), false));
    }
}
