#![forbid(unsafe_code)]
//! Times in log lines, as programs write them; all as milliseconds since 1970 in UTC. A time that names no
//! zone is taken as UTC, which is what a run's `TZ` says.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// A line's time stands at its beginning, or in an access log after the client's names.
const LOOKED_AT: usize = 512;

/// Days since 1970-01-01 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March: the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a day since 1970-01-01.
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let civil = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(civil <= 2), civil, of_year - (153 * month + 2) / 5 + 1)
}

/// Milliseconds since 1970 of a point in time.
pub fn millis(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// RFC 3339 in UTC: `2026-01-02T03:04:05.678Z`.
pub fn rfc3339(time: i64) -> String {
    let (year, month, day) = date(time.div_euclid(DAY));
    let ms = time.rem_euclid(DAY);
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1000)
}

/// A point in time for the name of a file: `20260102T030405Z`.
pub fn compact(time: SystemTime) -> String {
    let mut text: String = rfc3339(millis(time)).chars().filter(|c| !matches!(c, '-' | ':')).collect();
    text.truncate("20260102T030405".len());
    text + "Z"
}

/// A reader over the bytes of a line.
struct Cursor<'l>(&'l [u8]);

impl Cursor<'_> {
    /// A number of so many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let mut number = 0;
        for digit in digits {
            number = number * 10 + i64::from(char::from(*digit).to_digit(10)?);
        }
        self.0 = rest;
        Some(number)
    }

    /// One byte out of a set.
    fn one_of(&mut self, set: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !set.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// The name of a month.
    fn month(&mut self) -> Option<i64> {
        let (name, rest) = self.0.split_at_checked(3)?;
        let at = MONTHS.iter().position(|month| month.as_bytes() == name)?;
        self.0 = rest;
        i64::try_from(at + 1).ok()
    }

    /// `03:04:05` with an optional fraction, as milliseconds of the day.
    fn clock(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        self.one_of(b":")?;
        let second = self.digits(2)?;
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let mut ms = 0;
        if self.one_of(b".,").is_some() {
            let mut weight = 100;
            while let Some(digit) = self.digits(1) {
                ms += digit * weight;
                weight /= 10;
            }
        }
        Some(((hour * 60 + minute) * 60 + second) * 1000 + ms)
    }

    /// `Z`, `+0200` or `+02:00`, as milliseconds east of UTC; nothing is UTC.
    fn zone(&mut self) -> i64 {
        let Some(sign) = self.one_of(b"Z+-") else {
            return 0;
        };
        let mut offset = || {
            let hours = self.digits(2)?;
            self.one_of(b":");
            Some((hours * 60 + self.digits(2)?) * 60_000)
        };
        match sign {
            b'+' => offset().unwrap_or(0),
            b'-' => -offset().unwrap_or(0),
            _ => 0,
        }
    }
}

fn on_day(year: i64, month: i64, day: i64) -> Option<i64> {
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then(|| days(year, month, day) * DAY)
}

/// The time of a log line: RFC 3339 and its relatives, nginx's error log, syslog without a year, and the
/// bracketed time of an access log. `written` is when the file was last written: a time without a year is
/// never much later than that.
pub fn of_line(line: &[u8], written: i64) -> Option<i64> {
    let line = line.get(..LOOKED_AT).unwrap_or(line);
    let start = line.strip_prefix(b"[").unwrap_or(line);
    numeric(&mut Cursor(start)).or_else(|| syslog(&mut Cursor(start), written)).or_else(|| access(line))
}

/// `2026-01-02T03:04:05Z`, `2026-01-02 03:04:05,678`, `2026/01/02 03:04:05`.
fn numeric(at: &mut Cursor<'_>) -> Option<i64> {
    let year = at.digits(4)?;
    let separator = at.one_of(b"-/")?;
    let month = at.digits(2)?;
    at.one_of(&[separator])?;
    let day = at.digits(2)?;
    at.one_of(b"T ")?;
    let clock = at.clock()?;
    Some(on_day(year, month, day)? + clock - at.zone())
}

/// `Jan  2 03:04:05`: of the year that puts it before, or at most a day after, the last write.
fn syslog(at: &mut Cursor<'_>, written: i64) -> Option<i64> {
    let month = at.month()?;
    at.one_of(b" ")?;
    let day = if at.one_of(b" ").is_some() { at.digits(1)? } else { at.digits(2)? };
    at.one_of(b" ")?;
    let clock = at.clock()?;
    let (year, ..) = date(written.div_euclid(DAY));
    let this_year = on_day(year, month, day)? + clock;
    if this_year <= written.saturating_add(DAY) {
        Some(this_year)
    } else {
        Some(on_day(year - 1, month, day)? + clock)
    }
}

/// `[02/Jan/2026:03:04:05 +0000]` somewhere near the beginning.
fn access(line: &[u8]) -> Option<i64> {
    let open = line.iter().position(|byte| *byte == b'[')?;
    let mut at = Cursor(line.get(open + 1..)?);
    let day = at.digits(2)?;
    at.one_of(b"/")?;
    let month = at.month()?;
    at.one_of(b"/")?;
    let year = at.digits(4)?;
    at.one_of(b":")?;
    let clock = at.clock()?;
    at.one_of(b" ")?;
    Some(on_day(year, month, day)? + clock - at.zone())
}

/// A time that a caller gives: a date, a date with a time, or a span before now (`90s`, `15m`, `2h`, `3d`).
pub fn of_caller(text: &str, now: i64) -> Option<i64> {
    if let Some(days) = text.strip_suffix('d') {
        return now.checked_sub(days.parse::<u32>().ok().map(i64::from)?.checked_mul(DAY)?);
    }
    if let Some(span) = gloveport_contract::units::Millis::parse(text) {
        return now.checked_sub(i64::try_from(span.0).ok()?);
    }
    let whole = match text.len() {
        10 => format!("{text}T00:00:00"),
        16 => format!("{text}:00"),
        _ => text.to_owned(),
    };
    let mut at = Cursor(whole.as_bytes());
    let time = numeric(&mut at)?;
    at.0.is_empty().then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: i64 = 1_767_323_045_000; // 2026-01-02T03:04:05Z

    #[test]
    fn dates_convert_both_ways() {
        for day in [-719_468, -1, 0, 59, 60, 365, 11_016, 20_455, 2_932_896] {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
        assert_eq!(rfc3339(WRITTEN + 678), "2026-01-02T03:04:05.678Z");
        assert_eq!(compact(UNIX_EPOCH), "19700101T000000Z");
    }

    #[test]
    fn the_usual_forms_are_known() {
        for line in [
            "2026-01-02T03:04:05Z x",
            "2026-01-02T03:04:05.000000+00:00 host x",
            "2026-01-02T05:04:05+0200 x",
            "2026-01-02 03:04:05,000 INFO",
            "[2026-01-02 03:04:05] x",
            "2026/01/02 03:04:05 [error] 1#1: x",
            "Jan  2 03:04:05 host x[1]: y",
            "192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] \"GET / HTTP/1.1\"",
            "::1 - me [02/Jan/2026:04:04:05 +0100] x",
        ] {
            assert_eq!(of_line(line.as_bytes(), WRITTEN), Some(WRITTEN), "{line}");
        }
        assert_eq!(of_line(b"2026-01-02T03:04:05.25Z", WRITTEN), Some(WRITTEN + 250));
    }

    #[test]
    fn a_time_without_a_year_is_in_the_past() {
        let december = of_line(b"Dec 31 23:59:59 host x", WRITTEN).unwrap();
        assert_eq!(rfc3339(december), "2025-12-31T23:59:59.000Z");
    }

    #[test]
    fn other_lines_have_no_time() {
        for line in
            ["", "  at java.lang.Thread.run", "2026-01-02", "2026-13-02T03:04:05Z", "[x] y", "Jan x", "99"]
        {
            assert_eq!(of_line(line.as_bytes(), WRITTEN), None, "{line}");
        }
    }

    #[test]
    fn a_caller_gives_a_time_or_a_span() {
        assert_eq!(of_caller("2026-01-02T03:04:05Z", 0), Some(WRITTEN));
        assert_eq!(of_caller("2026-01-02 03:04", 0), Some(WRITTEN - 5000));
        assert_eq!(of_caller("2026-01-02", 0).map(rfc3339).unwrap(), "2026-01-02T00:00:00.000Z");
        assert_eq!(of_caller("15m", WRITTEN), Some(WRITTEN - 900_000));
        assert_eq!(of_caller("3d", WRITTEN), Some(WRITTEN - 3 * DAY));
        for nonsense in ["", "yesterday", "5", "2026-01-02T03:04:05Z x", "-3d", "2026-1-2"] {
            assert_eq!(of_caller(nonsense, 0), None, "{nonsense}");
        }
    }
}
