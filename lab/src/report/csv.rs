//! Every figure of every cell in long form, for spreadsheets and other programs.

use std::io;

use crate::results::Run;

use super::figure::label;

/// The text of `cells.csv`. Every cell has at least its numbers of failures, so that none is
/// missing for having measured nothing.
pub fn text(run: &Run) -> io::Result<String> {
    let mut to = ::csv::Writer::from_writer(Vec::new());
    to.write_record(["case", "round", "contender", "sound", "metric", "value"])?;
    for result in &run.cases {
        let case = label(&result.case);
        for (round, cells) in result.rounds.iter().enumerate() {
            let round = (round + 1).to_string();
            for cell in cells {
                let sound = cell.sound().to_string();
                let failures = [
                    ("failures", cell.failures.total()),
                    ("unexpected_failures", cell.unexpected_failures),
                ];
                let failures = failures.map(|(name, count)| (name, count.to_string()));
                let figures = cell.metrics.iter().filter(|(_, value)| value.is_finite());
                let figures = figures.map(|(name, value)| (name.as_str(), value.to_string()));
                for (name, value) in failures.into_iter().chain(figures) {
                    to.write_record([&case, &round, &cell.contender, &sound, name, &value])?;
                }
            }
        }
    }
    let bytes = to.into_inner().map_err(|error| error.into_error())?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use crate::report::sample;

    #[test]
    fn every_cell_has_its_lines() {
        let text = super::text(&sample::run()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "case,round,contender,sound,metric,value");
        assert!(lines.contains(&"hello,1,oribi,true,main.rps,41000"));
        // Void, but not silently left out.
        assert!(lines.contains(&"hello,2,puma,false,unexpected_failures,14"));
        assert!(lines.contains(&"hello,3,unicorn,false,failures,0"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
