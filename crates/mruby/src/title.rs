//! What `ps` shows of this process.

use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

/// Room that a mold's command line has for its title.
pub const ROOM: usize = 80;

/// Replaces the command line, as far as there is room: where it lies says proc_pid_stat(5), fields 48
/// and 49. That it cannot be done is no reason to stop.
pub fn set(title: &str) {
    let _ = rustix::thread::set_name(c"oribi-mruby");
    let Ok(stat) = read_to_string("/proc/self/stat") else { return };
    // The second field is a name, which may hold anything but ends with a parenthesis.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return };
    let field = |number: usize| rest.split(' ').nth(number - 3)?.parse::<u64>().ok();
    let (Some(start), Some(end)) = (field(48), field(49)) else { return };
    let mut bytes = vec![0; end.saturating_sub(start).min(4096) as usize];
    let length = title.len().min(bytes.len().saturating_sub(1));
    bytes[..length].copy_from_slice(&title.as_bytes()[..length]);
    if let Ok(memory) = File::options().write(true).open("/proc/self/mem") {
        let _ = memory.write_all_at(&bytes, start);
    }
}
