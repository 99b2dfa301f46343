//! How the application's server is started, and in what environment.
//!
//! What to run can be written behind this program, in its own file: `oribi cgi install` and `oribi
//! cgi bundle` do. A program may be followed by anything; here it is words, each ended by a NUL,
//! then 16 bytes: `ORIBI-CGI` and the length of the words in seven decimal digits. Words that begin
//! the list and read NAME=VALUE are environment. The word behind them is the Ruby to use, and what
//! follows is the command `oribi`; a bundle's trailer has no such words.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, setsid};

use crate::log;
use crate::place::{Place, own_file};

/// Has this program start the server of the application it names, and become that server.
const MODE: &str = "ORIBI_CGI_START";
/// For a web server that gives its programs no PATH.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const MARK: &[u8] = b"ORIBI-CGI";
const TRAILER_END: u64 = 16;
/// The exit code of a shell that does not find a command.
const NOT_FOUND: i32 = 127;

/// Variables that belong to one request: a name, or with `*` the beginning of names.
const OF_A_REQUEST: [&str; 29] = [
    "AUTH_*",
    "CONTENT_*",
    "CONTEXT_*",
    "DOCUMENT_*",
    "FCGI_*",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "HTTP_*",
    "ORIG_*",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "PROXY_*",
    "QUERY_STRING",
    "REDIRECT_*",
    "REMOTE_*",
    "REQUEST_*",
    "SCRIPT_*",
    "SERVER_*",
    "SSL_CIPHER*",
    "SSL_CLIENT_*",
    "SSL_COMPRESS_METHOD",
    "SSL_PROTOCOL",
    "SSL_SECURE_RENEG",
    "SSL_SERVER_*",
    "SSL_SESSION_*",
    "SSL_TLS_SNI",
    "SSL_VERSION_*",
    "UNIQUE_ID",
    "UNENCODED_URL",
];

/// The application whose server this process is to become.
pub fn asked() -> Option<PathBuf> {
    env::var_os(MODE).map(PathBuf::from)
}

/// Starts the server in the background; the id of its process.
pub fn spawn(place: &Place) -> io::Result<Pid> {
    let mut command = Command::new(&place.program);
    command.current_dir(&place.dir).env_clear().env("PATH", PATH);
    command.envs(env::vars_os().filter(|(name, _)| stays(name))).env(MODE, &place.dir);
    let log = log::open(place)?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn()?;
    Pid::from_raw(child.id() as i32).ok_or_else(|| io::Error::other("a process without an id"))
}

/// In the process that becomes the server: nothing of the web server's stays with it. Returns only
/// if that fails, with an exit status.
pub fn become_server(dir: PathBuf) -> i32 {
    leave_behind();
    let _ = setsid();
    let words = own_file(&dir).and_then(|program| trailer(&program)).unwrap_or_default();
    let said = words.iter().take_while(|word| is_assignment(word)).count();
    let (assignments, words) = words.split_at(said);
    let line = server(&dir, words);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).env_remove(MODE);
    for word in assignments {
        let mut parts = word.as_bytes().splitn(2, |byte| *byte == b'=').map(OsStr::from_bytes);
        command.env(parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    }
    let error = command.exec();
    let path = env::var_os("PATH").unwrap_or_default();
    eprintln!(
        "oribi: index.cgi: cannot run {}: {error} (PATH={}); run `oribi cgi install` again, or see \
         to it that the web server's PATH leads there",
        line[0].display(),
        path.display()
    );
    NOT_FOUND
}

/// Closes what the web server had open: a server that lives longer must not keep its connections
/// and logs.
fn leave_behind() {
    let listed = std::fs::read_dir("/proc/self/fd");
    let open: Vec<i32> = match listed {
        Ok(list) => list.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect(),
        Err(_) => (0..1024).collect(),
    };
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        let _ = nix::unistd::close(fd);
    }
}

/// The command line of the server, from the words that are no environment.
fn server(dir: &Path, words: &[OsString]) -> Vec<OsString> {
    let ruby = words.first().cloned().unwrap_or_else(|| "ruby".into());
    let plain = dir.join("acgi.rb");
    let directory = dir.as_os_str().to_owned();
    if plain.exists() {
        return vec![ruby, plain.into(), "--server".into(), directory];
    }
    let mut line = if words.len() > 1 { words.to_vec() } else { vec!["oribi".into()] };
    line.extend(["cgi".into(), "serve".into(), directory]);
    line
}

fn is_assignment(word: &OsStr) -> bool {
    let name = word.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn stays(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !OF_A_REQUEST.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning.as_bytes()),
        None => name == pattern.as_bytes(),
    })
}

/// The words behind a program.
fn trailer(program: &Path) -> Option<Vec<OsString>> {
    let file = File::open(program).ok()?;
    let end = file.metadata().ok()?.len().checked_sub(TRAILER_END)?;
    let mut mark = [0; TRAILER_END as usize];
    file.read_exact_at(&mut mark, end).ok()?;
    let length = std::str::from_utf8(mark.strip_prefix(MARK)?).ok()?.parse::<u64>().ok()?;
    let mut words = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut words, end.checked_sub(length)?).ok()?;
    let words = words.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_gets_nothing_of_a_request() {
        for name in ["HTTP_PROXY", "HTTPS", "QUERY_STRING", "REMOTE_USER", "SSL_CLIENT_CERT"] {
            assert!(!stays(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "SSL_CERT_FILE", "ORIBI_RUNTIME_DIR", "DATABASE_URL"] {
            assert!(stays(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn words_are_read_from_the_end() {
        let path = env::temp_dir().join(format!("oribi-trailer-{}", std::process::id()));
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let words = trailer(&path);
            std::fs::remove_file(&path).unwrap();
            words.map(|words| words.join(OsStr::new("|")))
        };
        assert_eq!(read(b"\x7fELF...ruby\0oribi\0ORIBI-CGI0000011").unwrap(), "ruby|oribi");
        assert_eq!(read(b"\x7fELF"), None);
        assert_eq!(read(b"\x7fELF................................"), None);
        assert_eq!(read(b"ruby\0ORIBI-CGI9999999"), None);
    }

    #[test]
    fn the_words_decide_what_is_run() {
        let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
        let line = |list: &[&str]| server(Path::new("/no/app"), &words(list));
        assert_eq!(line(&[]), words(&["oribi", "cgi", "serve", "/no/app"]));
        assert_eq!(line(&["/bin/ruby"]), words(&["oribi", "cgi", "serve", "/no/app"]));
        assert_eq!(
            line(&["/bin/ruby", "/gems/bin/oribi"]),
            words(&["/bin/ruby", "/gems/bin/oribi", "cgi", "serve", "/no/app"])
        );
        assert!(is_assignment(OsStr::new("GEM_HOME=/a=b")));
        assert!(!is_assignment(OsStr::new("/usr/bin/ruby=3")));
        assert!(!is_assignment(OsStr::new("ruby")));
    }
}
