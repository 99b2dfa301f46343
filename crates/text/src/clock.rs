//! Times as text: `Time#strftime` with its flags and widths, ISO 8601 and HTTP's dates.

use jiff::civil::{Date, Time};
use jiff::fmt::temporal;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// A moment where somebody is.
#[derive(Clone, Debug)]
pub struct Moment {
    seconds: i64,
    zoned: Zoned,
    zone: String,
}

impl Moment {
    /// Seconds and nanoseconds since 1970, in UTC or in the local zone. `None` for what lies beyond
    /// the years -9999 to 9999.
    pub fn new(seconds: i64, nanoseconds: i32, utc: bool) -> Option<Moment> {
        let timestamp = Timestamp::new(seconds, nanoseconds).ok()?;
        if utc {
            let zoned = timestamp.to_zoned(TimeZone::UTC);
            return Some(Moment { seconds, zoned, zone: "UTC".into() });
        }
        let local = TimeZone::system();
        let zone = local.to_offset_info(timestamp).abbreviation().to_owned();
        Some(Moment { seconds, zoned: timestamp.to_zoned(local), zone })
    }

    /// Seconds east of UTC.
    pub fn offset(&self) -> i32 {
        self.zoned.offset().seconds()
    }

    /// What the zone is called at that moment.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, RFC 9110 section 5.6.7.
    pub fn httpdate(&self) -> String {
        let zoned = self.zoned.timestamp().to_zoned(TimeZone::UTC);
        Moment { zoned, zone: "GMT".into(), ..*self }.strftime("%a, %d %b %Y %H:%M:%S GMT")
    }

    /// `2024-05-06T07:08:09Z`, with so many digits of the second's fraction.
    pub fn iso8601(&self, digits: usize) -> String {
        let fraction = if digits == 0 { String::new() } else { format!(".%{digits}N") };
        let zone = if self.zone == "UTC" && self.offset() == 0 { "Z" } else { "%:z" };
        self.strftime(&format!("%Y-%m-%dT%H:%M:%S{fraction}{zone}"))
    }

    /// `Time#strftime`: `%` flags (`-0^#_:`), width, letter. What is not known stays as it is.
    pub fn strftime(&self, format: &str) -> String {
        let mut out = String::with_capacity(format.len() * 2);
        let mut rest = format;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            let (spec, letter, behind) = Spec::parse(after);
            match letter.and_then(|letter| self.field(letter, &spec)) {
                Some(text) => out.push_str(&text),
                None => out.push_str(&rest[before.len()..rest.len() - behind.len()]),
            }
            rest = behind;
        }
        out.push_str(rest);
        out
    }

    fn field(&self, letter: char, spec: &Spec) -> Option<String> {
        let at = &self.zoned;
        let date = at.date();
        let number = |value: i64, width| Some(spec.number(value, width, '0'));
        let blank = |value: i64, width| Some(spec.number(value, width, ' '));
        let text = |text: &str| Some(spec.text(text));
        let inner = |format| Some(spec.text(&self.strftime(format)));
        let hour = i64::from(at.hour());
        let twelve = (hour + 11) % 12 + 1;
        let weekday = i64::from(at.weekday().to_sunday_zero_offset());
        let day = i64::from(date.day_of_year());
        let week = date.iso_week_date();
        let year = i64::from(at.year());
        match letter {
            'Y' => number(year, if year < 0 { 5 } else { 4 }),
            'C' => number(year.div_euclid(100), 2),
            'y' => number(year.rem_euclid(100), 2),
            'm' => number(at.month().into(), 2),
            'B' => text(MONTHS[usize::from(at.month() as u8) - 1]),
            'b' | 'h' => text(&MONTHS[usize::from(at.month() as u8) - 1][..3]),
            'd' => number(at.day().into(), 2),
            'e' => blank(at.day().into(), 2),
            'j' => number(day, 3),
            'H' => number(hour, 2),
            'k' => blank(hour, 2),
            'I' => number(twelve, 2),
            'l' => blank(twelve, 2),
            'P' => text(if hour < 12 { "am" } else { "pm" }),
            'p' if spec.swap => Some(spec.pad(if hour < 12 { "am" } else { "pm" })),
            'p' => text(if hour < 12 { "AM" } else { "PM" }),
            'M' => number(at.minute().into(), 2),
            'S' => number(at.second().into(), 2),
            'L' => Some(self.fraction(spec.width.unwrap_or(3))),
            'N' => Some(self.fraction(spec.width.unwrap_or(9))),
            's' => number(self.seconds, 1),
            'z' => Some(self.zone_offset(spec)),
            'Z' if spec.swap => Some(spec.pad(&self.zone.to_lowercase())),
            'Z' => text(&self.zone),
            'A' => text(DAYS[usize::try_from(weekday).ok()?]),
            'a' => text(&DAYS[usize::try_from(weekday).ok()?][..3]),
            'u' => number(at.weekday().to_monday_one_offset().into(), 1),
            'w' => number(weekday, 1),
            'G' => number(week.year().into(), 4),
            'g' => number(i64::from(week.year()).rem_euclid(100), 2),
            'V' => number(week.week().into(), 2),
            'U' => number((day + 6 - weekday) / 7, 2),
            'W' => number((day + 6 - (weekday + 6) % 7) / 7, 2),
            'n' => text("\n"),
            't' => text("\t"),
            '%' => text("%"),
            'c' => inner("%a %b %e %H:%M:%S %Y"),
            'D' | 'x' => inner("%m/%d/%y"),
            'F' => inner("%Y-%m-%d"),
            'T' | 'X' => inner("%H:%M:%S"),
            'R' => inner("%H:%M"),
            'r' => inner("%I:%M:%S %p"),
            'v' => inner("%e-%^b-%Y"),
            _ => None,
        }
    }

    /// So many digits, cut off and not rounded.
    fn fraction(&self, digits: usize) -> String {
        let all = format!("{:09}", self.zoned.subsec_nanosecond());
        format!("{:0<digits$}", &all[..digits.min(9)])
    }

    fn zone_offset(&self, spec: &Spec) -> String {
        let (offset, sign) = (self.offset(), if self.offset() < 0 { '-' } else { '+' });
        let (hours, minutes, seconds) =
            (offset.abs() / 3_600, offset.abs() / 60 % 60, offset.abs() % 60);
        let tail = match spec.colons {
            0 => format!("{minutes:02}"),
            1 => format!(":{minutes:02}"),
            _ => format!(":{minutes:02}:{seconds:02}"),
        };
        let width = spec.width.unwrap_or(0).saturating_sub(tail.len() + 1).max(2);
        format!("{sign}{hours:0width$}{tail}")
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// A wider field would only cost memory.
const WIDTH: usize = 1_024;

/// What stands between `%` and the letter.
#[derive(Default)]
struct Spec {
    /// `-`: no padding; `0` or `_`: this padding.
    padding: Option<Option<char>>,
    upper: bool,
    swap: bool,
    colons: usize,
    width: Option<usize>,
}

impl Spec {
    fn parse(text: &str) -> (Spec, Option<char>, &str) {
        let mut spec = Spec::default();
        for (at, char) in text.char_indices() {
            match char {
                '-' => spec.padding = Some(None),
                '0' if spec.width.is_none() => spec.padding = Some(Some('0')),
                '_' => spec.padding = Some(Some(' ')),
                '^' => spec.upper = true,
                '#' => spec.swap = true,
                ':' => spec.colons += 1,
                '0'..='9' => {
                    let digit = char.to_digit(10).unwrap_or(0) as usize;
                    spec.width = Some((spec.width.unwrap_or(0) * 10 + digit).min(WIDTH));
                }
                'E' | 'O' => {}
                letter => return (spec, Some(letter), &text[at + letter.len_utf8()..]),
            }
        }
        (spec, None, "")
    }

    fn number(&self, value: i64, width: usize, padding: char) -> String {
        let width = self.width.unwrap_or(width);
        match self.padding.unwrap_or(Some(padding)) {
            None => value.to_string(),
            Some('0') => format!("{value:0width$}"),
            Some(_) => format!("{value:width$}"),
        }
    }

    fn text(&self, text: &str) -> String {
        if self.upper || self.swap { self.pad(&text.to_uppercase()) } else { self.pad(text) }
    }

    fn pad(&self, text: &str) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        let padding = match self.padding {
            Some(Some('0')) => "0",
            Some(None) => "",
            _ => " ",
        };
        padding.repeat(missing) + text
    }
}

/// What a text says: seconds and nanoseconds since 1970, and whether it says so in UTC.
pub type Said = (i64, i32, bool);

/// `Time.iso8601`: a date, `T`, a time, and `Z` or an offset, or else the local zone.
pub fn parse_iso8601(text: &str) -> Option<Said> {
    let text = text.trim();
    if !text.as_bytes().get(10).is_some_and(|byte| b"Tt".contains(byte)) {
        return None;
    }
    let parser = temporal::DateTimeParser::new();
    if let Ok(timestamp) = parser.parse_timestamp(text) {
        let utc = text.ends_with(['Z', 'z']) || text.ends_with("-00:00");
        return Some((timestamp.as_second(), timestamp.subsec_nanosecond(), utc));
    }
    let local = parser.parse_datetime(text).ok()?.to_zoned(TimeZone::system()).ok()?.timestamp();
    Some((local.as_second(), local.subsec_nanosecond(), false))
}

/// `Time.httpdate`: the three forms of RFC 9110 section 5.6.7, always UTC.
pub fn parse_httpdate(text: &str) -> Option<Said> {
    let words: Vec<&str> = text.split([' ', '-']).filter(|word| !word.is_empty()).collect();
    let number = |word: &str| word.parse::<i8>().ok();
    let (day, month, year, time) = match words[..] {
        [_, month, day, time, year] if !text.contains(',') => (day, month, year, time),
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        _ => return None,
    };
    let known = DAYS.iter().any(|day| words[0].trim_end_matches(',').starts_with(&day[..3]));
    let month = MONTHS.iter().position(|name| name[..3] == *month).filter(|_| known)?;
    let year = match year.parse::<i16>().ok()? {
        // Two digits are the century's that is near: RFC 2068 section 19.3.
        short @ 0..=49 if year.len() == 2 => short + 2000,
        short if year.len() == 2 => short + 1900,
        long => long,
    };
    let mut clock = time.split(':').map(number);
    let mut next = || clock.next().flatten();
    let time = Time::new(next()?, next()?, next()?.min(59), 0).ok()?;
    let date = Date::new(year, i8::try_from(month).ok()? + 1, number(day)?).ok()?;
    let at = Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
    Some((at.as_second(), 0, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(seconds: i64, format: &str) -> String {
        Moment::new(seconds, 123_456_789, true).unwrap().strftime(format)
    }

    /// `test/mruby_gems_test.rb` asks CRuby for the same.
    #[test]
    fn formats_are_those_of_cruby() {
        let cases: Vec<(i64, String, String)> =
            serde_json::from_str(include_str!("../tests/times.json")).expect("it is JSON");
        let wrong: Vec<String> = cases
            .into_iter()
            .map(|(seconds, format, want)| (utc(seconds, &format), format, want))
            .filter(|(got, _, want)| got != want)
            .map(|(got, format, want)| format!("{format:?}: {got:?}, and CRuby has {want:?}"))
            .collect();
        assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
    }

    #[test]
    fn known_texts_are_written() {
        let at = Moment::new(784_111_777, 5_000_000, true).unwrap();
        assert_eq!(at.httpdate(), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at.iso8601(0), "1994-11-06T08:49:37Z");
        assert_eq!(at.iso8601(3), "1994-11-06T08:49:37.005Z");
        assert!(Moment::new(i64::MAX, 0, true).is_none());
    }

    #[test]
    fn other_zones_have_offsets() {
        let zoned = Timestamp::from_second(0)
            .unwrap()
            .to_zoned(TimeZone::fixed(Offset::from_seconds(-12_600).unwrap()));
        let at = Moment { seconds: 0, zoned, zone: "XST".into() };
        assert_eq!(
            at.strftime("%H:%M %z %:z %::z %10z %Z"),
            "20:30 -0330 -03:30 -03:30:00 -000000330 XST"
        );
        assert_eq!(at.iso8601(0), "1969-12-31T20:30:00-03:30");
    }

    #[test]
    fn texts_are_read() {
        let iso = |text| parse_iso8601(text);
        assert_eq!(iso("1994-11-06T08:49:37Z"), Some((784_111_777, 0, true)));
        assert_eq!(iso("1994-11-06T09:49:37.25+01:00"), Some((784_111_777, 250_000_000, false)));
        assert!(iso("1994-11-06T08:49:37").is_some());
        for wrong in ["", "1994", "1994-11-06", "1994-13-06T00:00:00Z", "x", "1994-11-06 08:49:37Z"]
        {
            assert_eq!(iso(wrong), None, "{wrong}");
        }
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_httpdate(text), Some((784_111_777, 0, true)), "{text}");
        }
        for wrong in [
            "",
            "Sun",
            "Sun, 06 Nov 1994 08:49:37",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
        ] {
            assert_eq!(parse_httpdate(wrong), None, "{wrong}");
        }
    }
}
