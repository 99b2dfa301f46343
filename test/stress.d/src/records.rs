//! What the app wrote down.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// One run of the app for one request.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The request's number.
    pub number: u64,
    /// The worker's pid.
    pub pid: i32,
    /// When it began, ns.
    pub begun: u64,
    /// When it ended, ns.
    pub ended: Option<u64>,
    /// How long the request had been in the queue, ns.
    pub queued: u64,
}

/// Reads the records of all workers; fails on one that makes no sense.
pub fn read(directory: &Path) -> io::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let bad = |what: String| io::Error::other(format!("{}: {what}", path.display()));
        let pid: i32 = name.parse().map_err(|_| bad("not a pid".into()))?;
        let bytes = fs::read(&path)?;
        if bytes.len() % 24 != 0 {
            return Err(bad("half a record".into()));
        }
        let mut open: HashMap<u64, usize> = HashMap::new();
        for record in bytes.chunks_exact(24) {
            let word = |at: usize| {
                record[8 * at..8 * at + 8]
                    .iter()
                    .rev()
                    .fold(0u64, |sum, b| sum << 8 | u64::from(*b))
            };
            let (number, ends) = (word(0) >> 1, word(0) & 1 == 1);
            if !ends {
                open.insert(number, runs.len());
                let (begun, queued) = (word(1), word(2));
                runs.push(Run { number, pid, begun, ended: None, queued });
                continue;
            }
            let run = open.remove(&number).map(|index: usize| &mut runs[index]);
            run.ok_or_else(|| bad(format!("request {number} ended before it began")))?.ended =
                Some(word(1));
        }
    }
    Ok(runs)
}
