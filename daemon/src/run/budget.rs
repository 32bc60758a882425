#![forbid(unsafe_code)]
//! `max_output`: one budget for stdout and stderr of all steps.

/// What is left of a run's output.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    left: usize,
    /// The part of it that only stderr may use: it says why something failed.
    reserved: usize,
}

impl Budget {
    /// A budget of so many bytes, a quarter of them for stderr.
    pub fn new(total: usize) -> Self {
        Self { left: total, reserved: total / 4 }
    }

    /// Bytes that are left: no stream can get more.
    pub fn left(self) -> usize {
        self.left
    }

    /// How many bytes of a step's stdout and stderr fit; they count as used. After the `last` step nothing
    /// need be kept back.
    pub fn share(&mut self, stdout: usize, stderr: usize, last: bool) -> (usize, usize) {
        let stderr = stderr.min(self.reserved.max(self.left.saturating_sub(stdout)));
        self.reserved = self.reserved.saturating_sub(stderr);
        let kept_back = if last { 0 } else { self.reserved };
        let stdout = stdout.min(self.left.saturating_sub(stderr + kept_back));
        self.left = self.left.saturating_sub(stdout + stderr);
        (stdout, stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_step_shares_all_of_it() {
        for (stdout, stderr, expected) in [
            (100, 0, (100, 0)),
            (0, 100, (0, 100)),
            (200, 10, (90, 10)),
            (200, 200, (75, 25)),
            (50, 200, (50, 50)),
            (10, 20, (10, 20)),
        ] {
            let mut budget = Budget::new(100);
            assert_eq!(budget.share(stdout, stderr, true), expected);
            assert_eq!(budget.left(), 100 - expected.0 - expected.1);
        }
    }

    #[test]
    fn the_last_step_can_still_say_why_it_failed() {
        let mut budget = Budget::new(100);
        assert_eq!(budget.share(500, 5, false), (75, 5));
        assert_eq!(budget.share(500, 0, false), (0, 0));
        assert_eq!(budget.share(500, 500, true), (0, 20));
        assert_eq!(budget.share(1, 1, true), (0, 0));
    }
}
