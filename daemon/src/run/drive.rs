#![forbid(unsafe_code)]
//! One run, from its request to its last event.

use super::budget::Budget;
use super::collect::{self, Pipes, Stream, Treatment};
use super::live::{Live, Phase};
use super::outcome::{self, StepEnd};
use super::report::{Failure, Progress, Report};
use crate::helper::{Connection, HelperError, Peer};
use gloveport_contract::packet::{Enforcement, Event, Request};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout, timeout_at};

/// How long a place in the helper's queue is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long pipes are read on after their step has ended. Its tree is dead by then; a pipe that is still
/// open is held by somebody else.
const DRAIN: Duration = Duration::from_secs(1);
/// How often the number of bytes read is told.
const TELL: Duration = Duration::from_secs(1);
/// How often a run without new output is told to be there. Clients that count progress as a sign of life give
/// up after tens of seconds.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// Beyond the time that the call itself may take, waiting and connecting included, the helper has this long for
/// its first answer. One that was stopped must not hold the call any longer.
const ANSWER: Duration = Duration::from_secs(1);
/// Beyond the same time the helper has this long to end a run that it has accepted: 2.4 s at most for the tree,
/// and up to 5 s for the record.
const END: Duration = Duration::from_secs(8);

/// A call that is ready to be sent.
pub struct Job {
    /// The packet.
    pub request: Request,
    /// The action's name.
    pub action: String,
    /// The names of its steps.
    pub steps: Vec<String>,
    /// What goes to stdin.
    pub content: Option<Arc<[u8]>>,
    /// How long the helper will let it run.
    pub timeout: Duration,
    /// What becomes of the output; its limit is that of all steps together.
    pub treatment: Treatment,
    /// For those who look at it from outside.
    pub live: Arc<Live>,
}

/// What is known of a run so far.
struct Running {
    connection: Connection,
    started: Instant,
    /// What the time counts from: the start, or the end of waiting for approval.
    since: Instant,
    give_up: Instant,
    deadline: Duration,
    enforcement: Enforcement,
    steps: Vec<StepEnd>,
    budget: Budget,
    reading: Option<Reading>,
    /// The id and the patience of an approval that is waited for.
    waits: Option<(String, Duration)>,
    live: Arc<Live>,
    progress: mpsc::Sender<Progress>,
}

/// A step whose pipes are being read. Dropping it stops the reading.
struct Reading {
    index: u32,
    task: JoinSet<io::Result<(Stream, Stream)>>,
    stop: watch::Sender<bool>,
}

impl Job {
    /// Sends the request and follows the run to its end.
    ///
    /// # Errors
    /// Why there is no report.
    pub async fn run(
        self,
        socket: &Path,
        peer: Peer,
        slots: Arc<Semaphore>,
        progress: mpsc::Sender<Progress>,
    ) -> Result<Report, Failure> {
        let started = Instant::now();
        let give_up = started + self.timeout + ANSWER;
        let Ok(Ok(permit)) = timeout(PATIENCE, slots.acquire_owned()).await else {
            return Err(Failure::Busy);
        };
        let connecting = Connection::open(socket, peer, &self.request);
        let connection =
            timeout_at(give_up, connecting).await.unwrap_or(Err(HelperError::Busy)).map_err(failure)?;
        let running = Running {
            connection,
            started,
            since: started,
            give_up,
            deadline: Duration::ZERO,
            enforcement: Enforcement::default(),
            steps: self.steps.iter().map(|name| StepEnd::new(name)).collect(),
            budget: Budget::new(self.treatment.limit),
            reading: None,
            waits: None,
            live: self.live.clone(),
            progress,
        };
        running.follow(&self, permit).await
    }
}

impl Running {
    async fn follow(mut self, job: &Job, permit: OwnedSemaphorePermit) -> Result<Report, Failure> {
        let mut permit = Some(permit);
        let mut tell = ticks();
        let (mut told, mut told_at) = (0, self.started);
        let mut is_ending = false;
        let live = self.live.clone();
        loop {
            let event = tokio::select! {
                event = self.connection.next() => event.map_err(failure)?,
                by = live.wished_to_end(), if !is_ending => {
                    is_ending = true;
                    self.give_up = Instant::now() + END;
                    self.connection.end(by).await.map_err(failure)?;
                    continue;
                }
                _ = tokio::time::sleep_until(self.give_up) => {
                    return Err(too_late());
                }
                _ = tell.tick() => {
                    let bytes = self.live.bytes();
                    if bytes != told || told_at.elapsed() >= SIGN_OF_LIFE {
                        (told, told_at) = (bytes, Instant::now());
                        self.tell(self.sign_of_life(bytes));
                    }
                    continue;
                }
            };
            // The first answer frees the place in the queue: it is a run now, or none.
            permit.take();
            let Some((event, descriptors)) = event else {
                return Err(failure(HelperError::Lost));
            };
            match event {
                Event::Ended { receipt } => {
                    // Who cancels drops this future, or is known by name.
                    let cancelled = self.steps.iter().any(StepEnd::was_cancelled);
                    let ended_by = self.live.ended_by().filter(|_| cancelled);
                    if cancelled && ended_by.is_none() {
                        return Err(Failure::Helper(self.cut_short()));
                    }
                    let run = outcome::Run {
                        ended_by,
                        action: job.action.clone(),
                        deadline: self.deadline,
                        duration: self.started.elapsed(),
                        enforcement: self.enforcement,
                        receipt,
                    };
                    return Ok(outcome::report(run, self.steps));
                }
                Event::Refused { code, detail, receipt } => {
                    return Err(Failure::Refused { code, detail, receipt });
                }
                Event::Busy => return Err(Failure::Busy),
                event => {
                    let taken = timeout_at(self.give_up, self.take(job, event, descriptors)).await;
                    taken.unwrap_or_else(|_| Err(too_late()))?;
                }
            }
        }
    }

    async fn take(&mut self, job: &Job, event: Event, descriptors: Vec<OwnedFd>) -> Result<(), Failure> {
        match event {
            Event::AwaitingApproval { id, timeout_ms } => {
                let timeout = Duration::from_millis(timeout_ms);
                self.since = Instant::now() + timeout;
                self.give_up = self.since + END;
                self.live.answered(&id, Phase::Waiting, job.treatment.escapes);
                self.waits = Some((id, timeout));
                self.tell(self.sign_of_life(0));
            }
            Event::Accepted { run, deadline_ms, enforcement } => {
                self.waits = None;
                self.live.answered(&run, Phase::Running, job.treatment.escapes);
                self.deadline = Duration::from_millis(deadline_ms);
                self.since = self.since.min(Instant::now());
                self.give_up = self.since + self.deadline + END;
                self.enforcement = enforcement;
                self.tell(Progress::Accepted { run, deadline: self.deadline });
            }
            Event::StepStarted { index } => self.start(job, index, descriptors)?,
            Event::StepEnded { index, outcome, killed_by, usage } => {
                let last = usize::try_from(index).is_ok_and(|index| index + 1 == self.steps.len());
                let streams = self.drain(index).await?;
                let step = step_of(&mut self.steps, index)?;
                if let Some((stdout, stderr)) = streams {
                    step.show(stdout, stderr, &mut self.budget, last);
                }
                step.end(outcome, killed_by, usage);
            }
            _ => return Err(out_of_order("not an event of a run")),
        }
        Ok(())
    }

    fn start(&mut self, job: &Job, index: u32, descriptors: Vec<OwnedFd>) -> Result<(), Failure> {
        let step = step_of(&mut self.steps, index)?;
        if self.reading.is_some() {
            return Err(out_of_order("a step started before the last one ended"));
        }
        let name = step.name().to_owned();
        let mut descriptors = descriptors.into_iter();
        let (Some(stdout), Some(stderr)) = (descriptors.next(), descriptors.next()) else {
            return Err(out_of_order("a step without its pipes"));
        };
        let pipes = Pipes { stdout, stderr, stdin: descriptors.next() };
        let treatment = Treatment { limit: self.budget.left(), ..job.treatment.clone() };
        let (stop, stopped) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(collect::step(pipes, treatment, job.content.clone(), self.live.clone(), stopped));
        self.reading = Some(Reading { index, task, stop });
        self.tell(Progress::Step { index, name });
        Ok(())
    }

    /// Reads what is still in the pipes of a step that has ended; `None` where it never started.
    async fn drain(&mut self, index: u32) -> Result<Option<(Stream, Stream)>, Failure> {
        let Some(mut reading) = self.reading.take_if(|reading| reading.index == index) else {
            return Ok(None);
        };
        let joined = match timeout(DRAIN, reading.task.join_next()).await {
            Ok(joined) => joined,
            Err(_) => {
                reading.stop.send_replace(true);
                reading.task.join_next().await
            }
        };
        match joined {
            Some(Ok(Ok(streams))) => Ok(Some(streams)),
            Some(Ok(Err(error))) => Err(Failure::Helper(format!("the output could not be read: {error}"))),
            _ => Err(Failure::Helper("reading the output was interrupted".into())),
        }
    }

    /// What is said where the helper ended the run and nobody had asked for it.
    fn cut_short(&self) -> String {
        format!(
            "the helper ended while the action ran, and the action with it; its partial output ({} bytes) is \
             not shown. What it has changed stays changed: look before calling it again. `gloveport doctor` \
             tells whether the helper is back",
            self.live.bytes()
        )
    }

    /// What there is to say of a run about which nothing new is known.
    fn sign_of_life(&self, bytes: u64) -> Progress {
        let elapsed = self.started.elapsed();
        match &self.waits {
            Some((id, timeout)) => Progress::AwaitingApproval { id: id.clone(), elapsed, timeout: *timeout },
            None => Progress::Output { bytes, elapsed },
        }
    }

    /// Progress is a courtesy: a listener that does not keep up misses some of it.
    fn tell(&self, progress: Progress) {
        let _ = self.progress.try_send(progress);
    }
}

fn step_of(steps: &mut [StepEnd], index: u32) -> Result<&mut StepEnd, Failure> {
    steps
        .get_mut(usize::try_from(index).unwrap_or(usize::MAX))
        .ok_or_else(|| out_of_order("a step that the action does not have"))
}

fn ticks() -> Interval {
    let mut ticks = interval(TELL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn too_late() -> Failure {
    let what = "the helper did not answer in the time of the call: it may be stopped or overloaded. What it runs \
                has been cancelled";
    Failure::Helper(what.into())
}

fn out_of_order(what: &str) -> Failure {
    failure(HelperError::Protocol(what.into()))
}

fn failure(error: HelperError) -> Failure {
    match error {
        HelperError::Busy => Failure::Busy,
        HelperError::TooLarge(_) => Failure::Invalid(error.to_string()),
        error => Failure::Helper(error.to_string()),
    }
}
