#![forbid(unsafe_code)]
//! What the service manager is told (sd_notify(3)).

use sd_notify::NotifyState;
use std::time::Duration;

/// The service manager that started us, if one did.
#[derive(Debug, Clone, Copy)]
pub struct Manager {
    present: bool,
    watchdog: Option<Duration>,
}

impl Manager {
    /// The one in the environment.
    pub fn from_environment() -> Self {
        let present = std::env::var_os("NOTIFY_SOCKET").is_some();
        Self { present, watchdog: sd_notify::watchdog_enabled() }
    }

    /// Whether somebody starts us again after a failure.
    pub fn restarts(self) -> bool {
        self.present
    }

    /// Serving has begun.
    pub fn ready(self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Serving ends.
    pub fn stopping(self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Says now and then that the runtime still makes progress.
    pub async fn watch(self) {
        let Some(limit) = self.watchdog else { return };
        loop {
            tell(&[NotifyState::Watchdog]);
            tokio::time::sleep(limit / 3).await;
        }
    }
}

/// A manager that does not listen is no reason not to serve.
fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
