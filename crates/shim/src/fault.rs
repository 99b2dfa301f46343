//! When there is no answer from the application: what the client gets, and what the log gets.

use std::io::Write as _;

/// Why a request fails here.
pub struct Fault {
    /// The value of `Status:`; none when the answer has begun and can only be cut.
    status: Option<&'static str>,
    /// The cause in a few words that name no file: anybody may read them.
    cause: String,
    /// What only the log is told, with the remedy.
    detail: String,
}

impl Fault {
    /// A 500 for this reason.
    pub fn new(cause: impl Into<String>) -> Fault {
        let status = Some("500 Internal Server Error");
        Fault { status, cause: cause.into(), detail: String::new() }
    }

    /// The same fault with another status.
    pub fn status(self, status: &'static str) -> Fault {
        Fault { status: Some(status), ..self }
    }

    /// The same fault with what the log shall say besides.
    pub fn because(self, detail: impl Into<String>) -> Fault {
        Fault { detail: detail.into(), ..self }
    }

    /// The same fault where part of an answer may have gone out: there is no place for a page then.
    pub fn after(self, answered: bool) -> Fault {
        Fault { status: self.status.filter(|_| !answered), ..self }
    }

    /// The server has died in the middle of its answer.
    pub fn cut(detail: String) -> Fault {
        let cause = "the application's server died in the middle of an answer".to_owned();
        Fault { status: None, cause, detail }
    }

    /// Says so on both streams, as one write each; the exit status.
    pub fn answer(&self) -> i32 {
        let _ = std::io::stderr().write_all(self.line().as_bytes());
        let Some(status) = self.status else { return 1 };
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(self.page(status).as_bytes()).and_then(|()| out.flush());
        1
    }

    fn line(&self) -> String {
        let colon = if self.detail.is_empty() { "" } else { ": " };
        format!("oribi: index.cgi: {}{colon}{}\n", self.cause, self.detail)
    }

    fn page(&self, status: &str) -> String {
        let retry = if status.starts_with("503") { "Retry-After: 1\r\n" } else { "" };
        let remedy =
            if status.starts_with('5') { "; the web server's error log says more" } else { "" };
        format!(
            "Status: {status}\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\n{retry}\r\n\
             {}{remedy}\n",
            self.cause
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_told_more_than_the_client() {
        let fault = Fault::new("it did not start").because("no gem rack in /home/app");
        assert_eq!(fault.line(), "oribi: index.cgi: it did not start: no gem rack in /home/app\n");
        let page = fault.page("500 Internal Server Error");
        assert!(page.starts_with("Status: 500 Internal Server Error\r\n"), "{page}");
        assert!(page.ends_with("\r\n\r\nit did not start; the web server's error log says more\n"));
        assert!(!page.contains("/home"));
    }

    #[test]
    fn who_is_told_to_come_again_is_told_when() {
        let page = Fault::new("busy").page("503 Service Unavailable");
        assert!(page.contains("\r\nRetry-After: 1\r\n"));
    }
}
