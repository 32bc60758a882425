//! A daemon that has been taken over: it has the daemon's user and sends the helper what it likes.

use crate::Helper;
use crate::helper::TOKEN;
use gloveport_contract::packet::{
    Argument, Caller, Event, Outcome, RefusalCode, Request, Run, VERSION, Value,
};
use gloveport_contract::plan;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Longer than any run of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to the helper.
#[derive(Debug)]
pub struct Connection(OwnedFd);

/// What a run brought, when it was over.
#[derive(Debug)]
pub struct Finished {
    /// Every event, in order.
    pub events: Vec<Event>,
    /// What its steps printed.
    pub stdout: String,
    /// What its steps complained.
    pub stderr: String,
}

/// Connects as a user; SO_PEERCRED will say that user and the group of that number.
///
/// # Errors
/// Those of connect(2).
pub fn connect_as(socket: &Path, uid: u32, gid: u32) -> rustix::io::Result<Connection> {
    let socket = socket.to_owned();
    // The kernel keeps identities per thread; this one ends with the connection made.
    let connecting = std::thread::spawn(move || {
        let (user, group) = (rustix::process::Uid::from_raw(uid), rustix::process::Gid::from_raw(gid));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        let fd =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::net::connect(&fd, &SocketAddrUnix::new(&socket)?)?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(PATIENCE))?;
        Ok(Connection(fd))
    });
    connecting.join().expect("the thread that connects")
}

/// Whether the helper takes connections.
pub fn connects(socket: &Path, uid: u32) -> bool {
    connect_as(socket, uid, uid).is_ok()
}

impl Helper {
    /// Connects as the daemon.
    ///
    /// # Panics
    /// Where that fails.
    pub fn connect(&self) -> Connection {
        let uid = self.scene.daemon.number;
        connect_as(&self.socket(), uid, uid).expect("connecting to the helper")
    }

    /// The packet of an honest call: what a daemon that is not taken over would send.
    ///
    /// # Panics
    /// Where the catalogue does not allow the call.
    pub fn call(&self, action: &str, args: &[(&str, Value)]) -> Run {
        let args: Vec<Argument> = args
            .iter()
            .map(|(name, value)| Argument { name: (*name).into(), value: value.clone() })
            .collect();
        let declared = self.catalog.action(action).expect("an action of the catalogue");
        let plan = plan::plan(declared, &args, None).expect("a call that the catalogue allows");
        Run {
            version: VERSION,
            digest: self.digest,
            token: Some(TOKEN.into()),
            caller: Caller { via: "http".into(), ..Caller::default() },
            action: action.into(),
            args,
            argv: plan.steps.iter().map(|step| step.argv.clone()).collect(),
            content: None,
        }
    }

    /// Sends a call and reads everything that comes.
    pub fn run(&self, run: Run) -> Finished {
        let mut connection = self.connect();
        connection.send(&Request::Run(Box::new(run)));
        connection.finish()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Connection {
    /// Sends a request.
    ///
    /// # Panics
    /// Where it is no packet, or cannot be sent.
    pub fn send(&mut self, request: &Request) {
        self.send_bytes(&request.encode().expect("a packet")).expect("sending to the helper");
    }

    /// Sends any bytes as one packet.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send_bytes(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.send_with(bytes, &[])
    }

    /// Sends any bytes with descriptors.
    ///
    /// # Errors
    /// Those of sendmsg(2).
    pub fn send_with(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(|_| ())
    }

    /// The next event with its descriptors; `None` when the helper has closed.
    ///
    /// # Panics
    /// When nothing comes, or what comes is no event.
    pub fn receive(&mut self) -> Option<(Event, Vec<OwnedFd>)> {
        let mut bytes = vec![0; 256 * 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match rustix::net::recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                // Told once, before what is still queued: the other side closed with our packet unread.
                Err(rustix::io::Errno::CONNRESET) => {}
                other => break other.expect("an answer of the helper").bytes,
            }
        };
        let descriptors = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let descriptors = descriptors.collect();
        if received == 0 {
            return None;
        }
        Some((Event::decode(&bytes[..received]).expect("an event"), descriptors))
    }

    /// Reads every event and all output, to the end.
    pub fn finish(&mut self) -> Finished {
        let mut finished = Finished { events: Vec::new(), stdout: String::new(), stderr: String::new() };
        let mut readers = Vec::new();
        while let Some((event, descriptors)) = self.receive() {
            finished.events.push(event);
            // Read at once: a program that fills a pipe waits for its reader.
            readers.push(descriptors.into_iter().map(read_in_background).collect::<Vec<_>>());
        }
        for step in readers {
            let mut texts = step.into_iter().map(|reader| reader.join().expect("a reader"));
            finished.stdout += &texts.next().unwrap_or_default();
            finished.stderr += &texts.next().unwrap_or_default();
        }
        finished
    }
}

fn read_in_background(fd: OwnedFd) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = File::from(fd).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Finished {
    /// How the first step ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.events.iter().find_map(|event| match event {
            Event::StepEnded { outcome, .. } => Some(outcome),
            _ => None,
        })
    }

    /// Why it was refused, where it was.
    pub fn refused(&self) -> Option<(RefusalCode, &str)> {
        self.events.iter().find_map(|event| match event {
            Event::Refused { code, detail, .. } => Some((*code, detail.as_str())),
            _ => None,
        })
    }

    /// Whether any program was started, or promised to be.
    pub fn ran(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Accepted { .. } | Event::StepStarted { .. }))
    }
}
