//! Web servers in front.

use super::{Values, absolute, fill};
use crate::options::Settings;
use door::forwarded::Trust;
use std::net::IpAddr;
use std::path::Path;
use wire::settings::{Address, Door, Socket, network};

/// Where a web server finds our socket.
enum Upstream {
    Tcp { host: String, port: u16 },
    Unix(String),
}

/// A web server's texts and how it writes things.
struct Server {
    name: &'static str,
    frame: &'static str,
    /// What each door has in it; none: it does not speak that.
    http: &'static str,
    fastcgi: Option<&'static str>,
    scgi: Option<&'static str>,
    address: fn(&Upstream, Door) -> String,
}

const SERVERS: [Server; 4] = [
    Server {
        name: "nginx",
        frame: include_str!("nginx/server.conf"),
        http: include_str!("nginx/http.conf"),
        fastcgi: Some(include_str!("nginx/fastcgi.conf")),
        scgi: Some(include_str!("nginx/scgi.conf")),
        address: |upstream, _| match upstream {
            Upstream::Unix(path) => format!("unix:{path}"),
            Upstream::Tcp { host, port } => format!("{}:{port}", bracketed(host)),
        },
    },
    Server {
        name: "lighttpd",
        frame: include_str!("lighttpd/server.conf"),
        http: include_str!("lighttpd/http.conf"),
        fastcgi: Some(include_str!("lighttpd/fastcgi.conf")),
        scgi: Some(include_str!("lighttpd/scgi.conf")),
        address: |upstream, _| match upstream {
            Upstream::Unix(path) => format!("\"socket\" => \"{path}\""),
            Upstream::Tcp { host, port } => format!("\"host\" => \"{host}\", \"port\" => {port}"),
        },
    },
    Server {
        name: "apache",
        frame: include_str!("apache/server.conf"),
        http: include_str!("apache/http.conf"),
        fastcgi: Some(include_str!("apache/fastcgi.conf")),
        scgi: Some(include_str!("apache/scgi.conf")),
        address: |upstream, door| match (upstream, apache(door).0) {
            (Upstream::Unix(path), scheme) => format!("unix:{path}|{scheme}://localhost"),
            (Upstream::Tcp { host, port }, scheme) => {
                format!("{scheme}://{}:{port}", bracketed(host))
            }
        },
    },
    Server {
        name: "caddy",
        frame: include_str!("caddy/server.conf"),
        http: include_str!("caddy/http.conf"),
        fastcgi: Some(include_str!("caddy/fastcgi.conf")),
        scgi: None,
        address: |upstream, _| match upstream {
            Upstream::Unix(path) => format!("unix/{path}"),
            Upstream::Tcp { host, port } => format!("{}:{port}", bracketed(host)),
        },
    },
];

impl Server {
    fn text(&self, door: Door) -> Option<&'static str> {
        match door {
            Door::Http => Some(self.http),
            Door::FastCgi => self.fastcgi,
            Door::Scgi => self.scgi,
        }
    }
}

/// What nginx has outside of `server`.
fn nginx_upstream(door: Door) -> &'static str {
    match door {
        Door::Http => include_str!("nginx/http-upstream.conf"),
        Door::FastCgi => include_str!("nginx/fastcgi-upstream.conf"),
        Door::Scgi => include_str!("nginx/scgi-upstream.conf"),
    }
}

/// Scheme and module of Apache's mod_proxy.
fn apache(door: Door) -> (&'static str, &'static str) {
    match door {
        Door::Http => ("http", "proxy_http"),
        Door::FastCgi => ("fcgi", "proxy_fcgi"),
        Door::Scgi => ("scgi", "proxy_scgi"),
    }
}

/// The configuration of the web server of this name, which listens at `listen`.
pub fn print(
    name: &str,
    settings: &Settings,
    directory: &Path,
    listen: &str,
) -> Result<String, String> {
    let server = SERVERS.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| format!("{name} is not known here"))?;
    let bind = settings.binds.iter().find(|bind| server.text(bind.door).is_some());
    let bind = bind.ok_or_else(|| {
        format!("{name} does not speak SCGI: let Oribi listen for another, -b unix://PATH")
    })?;
    if settings.front.proxy_protocol && bind.door == Door::Http {
        return Err(format!(
            "proxy_protocol: {name} sends no PROXY header this way: leave it out, or name an \
             address for FastCGI"
        ));
    }
    plain("prefix", prefix(settings))?;
    let upstream = upstream(bind, directory)?;
    let mut values = values(server, bind.door, &upstream, settings);
    values.extend(where_it_listens(listen)?);
    values.push(("remarks", remarks(bind, &upstream, settings)));
    for part in ["upstream", "location"] {
        let template = match part {
            "upstream" => nginx_upstream(bind.door),
            _ => server.text(bind.door).unwrap_or_default(),
        };
        let filled = fill(template, &values);
        values.push((part, filled.trim_end_matches('\n').into()));
    }
    let text = fill(server.frame, &values);
    Ok(text)
}

/// The path of requests that are for Oribi; empty: all. Declared mounts share one location.
fn prefix(settings: &Settings) -> &str {
    match &settings.mounts[..] {
        [only] if !only.declared => &only.path,
        _ => "",
    }
}

fn values(server: &Server, door: Door, upstream: &Upstream, settings: &Settings) -> Values {
    let prefix = prefix(settings);
    let path = if prefix.is_empty() { "/" } else { prefix };
    let module = apache(door).1;
    // What any mount takes; no limit is a 0 to these web servers too.
    let limits = settings.mounts.iter().map(|mount| mount.front.body_limit);
    let limit = if limits.clone().any(|limit| limit == 0) { 0 } else { limits.max().unwrap_or(0) };
    // Idle connections end on that side first, so that no request meets one that is being closed.
    let rest = match settings.front.keep_alive_timeout.as_secs() {
        0 => 60,
        seconds => (seconds * 4 / 5).clamp(1, 60),
    };
    vec![
        ("path", path.into()),
        ("matches", if prefix.is_empty() { "/*".into() } else { format!("{path} {path}/*") }),
        ("address", (server.address)(upstream, door)),
        ("body_limit", limit.to_string()),
        ("body_limit_kib", limit.div_ceil(1024).to_string()),
        ("rest", rest.to_string()),
        ("modules", module.into()),
        ("load", format!("LoadModule {module}_module ${{MODULES}}/mod_{module}.so")),
    ]
}

/// Where to connect to what listens at this address.
fn upstream(bind: &Address, directory: &Path) -> Result<Upstream, String> {
    match &bind.socket {
        Socket::Unix(path) => {
            let path = absolute(directory, path).to_string_lossy().into_owned();
            plain("bind", &path).map(Upstream::Unix)
        }
        Socket::Tcp(_, 0) => Err(format!(
            "bind: the port of {bind} is chosen when the server starts: name one for a web server \
             to connect to"
        )),
        Socket::Tcp(host, port) => {
            let host = match &**host {
                "0.0.0.0" => "127.0.0.1".into(),
                "::" => "::1".into(),
                host => plain("bind", host)?,
            };
            Ok(Upstream::Tcp { host, port: *port })
        }
    }
}

/// What stands for itself in all of these languages.
fn plain(name: &str, text: &str) -> Result<String, String> {
    let usual = |c: char| c.is_alphanumeric() || "/._~+@,:=-".contains(c);
    match text.chars().all(usual) {
        true => Ok(text.into()),
        false => Err(format!(
            "{name}: {text:?} has a character that means something in configuration files: name a \
             plainer one"
        )),
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.into() }
}

fn where_it_listens(text: &str) -> Result<Values, String> {
    let whole = if text.parse::<u16>().is_ok() { format!("0.0.0.0:{text}") } else { text.into() };
    match Address::parse(&whole) {
        Ok(Address { door: Door::Http, socket: Socket::Tcp(host, port) }) if port != 0 => {
            let host = bracketed(&plain("listen", &host)?);
            Ok(vec![
                ("listen", format!("{host}:{port}")),
                ("listen_host", host),
                ("listen_port", port.to_string()),
            ])
        }
        _ => Err(format!("listen: {text:?} is no address: write HOST:PORT, [::1]:PORT or PORT")),
    }
}

/// Comments: which settings this is for, and what they still lack.
fn remarks(bind: &Address, upstream: &Upstream, settings: &Settings) -> String {
    let front = &settings.front;
    let mut words = vec![format!("-b {bind}")];
    if let (Socket::Unix(_), Some(mode)) = (&bind.socket, settings.listening.socket_mode) {
        words.push(format!("--socket-mode {mode:04o}"));
    }
    if !prefix(settings).is_empty() {
        words.push(format!("--prefix {}", prefix(settings)));
    }
    if bind.door == Door::Http {
        words.extend(front.trusted_proxies.iter().map(|net| format!("--trusted-proxies {net}")));
    }
    let mut lines = vec![format!("# oribi {}", words.join(" "))];
    if bind.door == Door::Http {
        lines.extend(forwarded(upstream, settings));
    }
    if matches!(upstream, Upstream::Unix(_)) && settings.listening.socket_mode.is_none() {
        lines.push(
            "# TO DO: the web server's user must be able to connect. Say whom the socket is for: \
             --socket-mode 0660 and, as root, --group"
                .into(),
        );
    }
    lines.join("\n")
}

/// What is missing for Oribi to believe the web server.
fn forwarded(upstream: &Upstream, settings: &Settings) -> Option<String> {
    let declared = &settings.front.trusted_proxies;
    let trust = Trust {
        networks: declared.iter().filter_map(|text| network(text)).collect(),
        unix: declared.iter().any(|text| text == "unix"),
    };
    let (client, name) = match upstream {
        Upstream::Unix(_) => (None, "unix".to_owned()),
        Upstream::Tcp { host, .. } => {
            let host = if host == "localhost" { "127.0.0.1" } else { host };
            (host.parse::<IpAddr>().ok(), host.to_owned())
        }
    };
    if !trust.covers(client) {
        return Some(format!(
            "# TO DO: Oribi does not believe the web server yet: REMOTE_ADDR is the web server's, \
             and\n# HTTPS is unknown. Say --trusted-proxies {name}"
        ));
    }
    (settings.front.forwarded != "x-forwarded").then(|| {
        format!(
            "# TO DO: these are X-Forwarded headers, and Oribi is set to --forwarded {}: leave that \
             out",
            settings.front.forwarded
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::{Layer, Origin, given};
    use crate::options::resolve;

    fn printed(name: &str, said: &[(&'static str, &[&str])]) -> Result<String, String> {
        let layer: Layer = said
            .iter()
            .map(|(name, values)| {
                (*name, given(values.iter().map(ToString::to_string), &Origin::CommandLine))
            })
            .collect();
        print(name, &resolve(&[layer], &[]).unwrap(), Path::new("/srv"), "127.0.0.1:80")
    }

    #[test]
    fn every_word_in_braces_has_a_value() {
        for server in SERVERS {
            for bind in ["tcp://[::1]:1", "unix://a.sock", "fastcgi://[::]:1", "scgi+unix:///b"] {
                if server.name == "caddy" && bind.starts_with("scgi") {
                    continue;
                }
                let text =
                    printed(server.name, &[("bind", &[bind]), ("prefix", &["/app"])]).unwrap();
                assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
                assert!(text.contains("/app") && text.contains("127.0.0.1"), "{text}");
                let socket = match bind.rsplit_once(['/', ':']) {
                    Some((_, "a.sock")) => "/srv/a.sock",
                    Some((_, "b")) => "/b",
                    _ => "::1",
                };
                assert!(text.contains(socket), "{text}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let to_do = |said: &[(&'static str, &[&str])]| {
            printed("nginx", said).unwrap().matches("TO DO").count()
        };
        assert_eq!(to_do(&[]), 1);
        let trusted = ("trusted_proxies", &["127.0.0.0/8"][..]);
        assert_eq!(to_do(&[trusted]), 0);
        assert_eq!(to_do(&[trusted, ("forwarded", &["none"])]), 1);
        assert_eq!(to_do(&[trusted, ("bind", &["unix:///a"])]), 2);
        let unix = [("bind", &["unix:///a"][..]), ("trusted_proxies", &["unix"])];
        assert_eq!(to_do(&[unix[0], unix[1], ("socket_mode", &["0660"])]), 0);
        assert_eq!(to_do(&[("bind", &["fastcgi://127.0.0.1:1"])]), 0);
    }

    #[test]
    fn what_cannot_work_is_refused() {
        let error = |name: &str, said: &[(&'static str, &[&str])]| printed(name, said).unwrap_err();
        assert!(error("nginx", &[("port", &["0"])]).contains("name one"));
        assert!(error("caddy", &[("bind", &["scgi://a:1"])]).contains("SCGI"));
        assert!(error("nginx", &[("prefix", &["/a;b"])]).contains("plainer"));
        assert!(error("nginx", &[("bind", &["unix:///a b"])]).contains("plainer"));
        assert!(error("nginx", &[("proxy_protocol", &["1"])]).contains("PROXY"));
        assert!(where_it_listens("nowhere").is_err());
        assert_eq!(where_it_listens("81").unwrap()[0].1, "0.0.0.0:81");
    }
}
