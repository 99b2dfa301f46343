//! Aligned columns for the terminal, in styles that [`anstream`] strips where they do not belong.

use anstyle::{AnsiColor, Style};

/// The widest a line may get.
pub const WIDTH: usize = 100;

/// Failures, and what was missed.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// What was kept.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// Names of cases and heads of columns.
pub const BOLD: Style = Style::new().bold();
/// What is said beside.
pub const DIM: Style = Style::new().dimmed();
/// Everything else.
pub const PLAIN: Style = Style::new();

/// A text in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A text of one style in a column.
pub type Entry = (String, Style);

/// Rows and columns; the first ones name the row, the others are aligned to the right.
pub struct Grid {
    /// Columns that name the row, at least one.
    pub names: usize,
    /// Lines of the head, each with all columns.
    pub head: Vec<Vec<String>>,
    /// All as long as the head's.
    pub rows: Vec<Vec<Entry>>,
}

impl Grid {
    /// As text: several tables one below the other when the columns do not fit beside each other.
    pub fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.head[0].len()).map(|at| self.width(at)).collect();
        let mut text = String::new();
        let mut from = self.names;
        while from < widths.len() {
            let mut used: usize = widths[..self.names].iter().map(|width| width + 2).sum();
            let mut to = from;
            while to < widths.len() && (to == from || used + 2 + widths[to] <= WIDTH) {
                used += 2 + widths[to];
                to += 1;
            }
            if from > self.names {
                text.push('\n');
            }
            let columns: Vec<usize> = (0..self.names).chain(from..to).collect();
            let said = |line: &&Vec<String>| columns.iter().any(|at| !line[*at].is_empty());
            for line in self.head.iter().filter(said) {
                let line = columns.iter().map(|at| (line[*at].clone(), BOLD));
                text += &self.row(line, &columns, &widths);
            }
            for line in &self.rows {
                let line = columns.iter().map(|at| line[*at].clone());
                text += &self.row(line, &columns, &widths);
            }
            from = to;
        }
        text
    }

    fn width(&self, at: usize) -> usize {
        let head = self.head.iter().map(|line| line[at].chars().count());
        let rows = self.rows.iter().map(|line| line[at].0.chars().count());
        head.chain(rows).max().unwrap_or(0)
    }

    fn row(
        &self,
        entries: impl Iterator<Item = Entry>,
        columns: &[usize],
        widths: &[usize],
    ) -> String {
        let mut line = String::new();
        for ((text, style), column) in entries.zip(columns) {
            let missing = " ".repeat(widths[*column] - text.chars().count());
            let text = styled(style, &text);
            line += &match *column < self.names {
                true => format!("  {text}{missing}"),
                false => format!("  {missing}{text}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    }
}

/// Words in lines that are not too long; `first` begins the first line, the others are as far in.
pub fn wrapped(first: &str, style: Style, text: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        let length = line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if indent.len() + length <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    let mut wrapped = String::new();
    for (at, line) in lines.iter().enumerate() {
        let before = if at == 0 { first } else { &indent };
        wrapped += &format!("{}\n", styled(style, &format!("{before}{line}")));
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_columns_become_several_tables() {
        let head: Vec<String> = (0..9).map(|at| format!("column number {at}")).collect();
        let row = head.iter().map(|text| (text.replace("column", "figure"), PLAIN)).collect();
        let text = Grid { names: 1, head: vec![head], rows: vec![row] }.text();
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= WIDTH), "{plain}");
        // Each of them names its rows.
        assert_eq!(plain.matches("figure number 0").count(), 2);
        assert_eq!(plain.matches("figure number 8").count(), 1);
    }

    #[test]
    fn long_texts_are_wrapped() {
        let text = wrapped("  note  ", PLAIN, &"word ".repeat(40));
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= WIDTH), "{plain}");
        assert!(plain.lines().skip(1).all(|line| line.starts_with("        word")), "{plain}");
        assert_eq!(plain.matches("word").count(), 40);
    }
}
