//! How much memory a process has, as the kernel counts it.

use std::fs;
use std::io;
use std::sync::OnceLock;

/// Resident bytes of a process, those it shares with others among them. Cheap. Fails as reading
/// `/proc` does, as when the process is gone.
pub fn rss(pid: u32) -> io::Result<u64> {
    static PAGE: OnceLock<u64> = OnceLock::new();
    let page = *PAGE.get_or_init(|| rustix::param::page_size() as u64);
    let statm = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    Ok(resident_pages(&statm).ok_or(io::ErrorKind::InvalidData)? * page)
}

/// Resident bytes of a process, each page divided by the number of processes that have it: what it
/// costs. The kernel walks all of the process's memory for it. Fails as reading `/proc` does:
/// nobody but root may ask about another user's process.
pub fn pss(pid: u32) -> io::Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    Ok(proportional_kib(&rollup).ok_or(io::ErrorKind::InvalidData)? * 1024)
}

fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn proportional_kib(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!(resident_pages("44093 11234 2345 12 0 9876 0\n"), Some(11234));
        assert_eq!(resident_pages("\n"), None);
        let rollup = "55e0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:    30000 kB\n\
                      Pss:              21044 kB\nPss_Dirty:  1 kB\n";
        assert_eq!(proportional_kib(rollup), Some(21044));
        assert_eq!(proportional_kib("Rss: 1 kB\n"), None);
    }

    #[test]
    fn this_process_has_some() {
        let pid = std::process::id();
        let (rss, pss) = (rss(pid).unwrap(), pss(pid).unwrap());
        assert!(rss > 1 << 18 && pss > 1 << 16, "{rss} {pss}");
        assert!(super::rss(u32::MAX).is_err());
    }
}
