//! Prometheus' text format, version 0.0.4: families of samples.

use std::fmt::{Display, Write};

/// A text that grows.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// Begins a family. Its samples follow, and nothing else until the next one begins.
    pub fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// One sample.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escape(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{after} {value}");
    }

    /// The samples of a histogram: `buckets` are not added up, the last one has no bound.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: &[f64],
        buckets: &[u64],
        sum: f64,
    ) {
        let bounds = bounds.iter().map(|bound| bound.to_string()).chain(["+Inf".into()]);
        let mut count = 0u64;
        for (bound, bucket) in bounds.zip(buckets) {
            count = count.wrapping_add(*bucket);
            let labels = [labels, &[("le", &*bound)]].concat();
            self.sample(&format!("{name}_bucket"), &labels, count);
        }
        self.sample(&format!("{name}_sum"), labels, Number(sum));
        self.sample(&format!("{name}_count"), labels, count);
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.0
    }
}

/// A number as Prometheus writes it.
pub struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            number if number.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            number => write!(f, "{number}"),
        }
    }
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.family("a_total", "counter", "One\\two\nthree.");
        text.sample("a_total", &[("mount", "a\"b\\c\nd"), ("status", "2xx")], 3);
        text.sample("b", &[], Number(f64::INFINITY));
        assert_eq!(
            text.finish(),
            "# HELP a_total One\\\\two\\nthree.\n# TYPE a_total counter\n\
             a_total{mount=\"a\\\"b\\\\c\\nd\",status=\"2xx\"} 3\nb +Inf\n"
        );
    }

    #[test]
    fn buckets_add_up() {
        let mut text = Text::default();
        text.histogram("s", &[("mount", "/")], &[0.5, 1.0], &[1, 0, 2], 4.25);
        assert_eq!(
            text.finish(),
            "s_bucket{mount=\"/\",le=\"0.5\"} 1\ns_bucket{mount=\"/\",le=\"1\"} 1\n\
             s_bucket{mount=\"/\",le=\"+Inf\"} 3\ns_sum{mount=\"/\"} 4.25\ns_count{mount=\"/\"} 3\n"
        );
    }
}
