//! Step 3, before any mount: files that the process has in its memory, as an embedding program
//! gives them. The front answers them itself; no slot is used and no worker hears of it.

use crate::relay::ReplyBody;
use bytes::Bytes;
use door::path;
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue};
use hyper::{Response, StatusCode};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;

/// The file that a directory's own path names too.
const INDEX: &str = "index.html";

/// The process's assets.
static ASSETS: OnceLock<Assets> = OnceLock::new();

/// Files in memory by their paths. An exact path goes before every mount.
#[derive(Debug, Default)]
pub struct Assets(HashMap<String, Asset>);

#[derive(Clone, Debug)]
struct Asset {
    bytes: Bytes,
    kind: HeaderValue,
    tag: HeaderValue,
}

impl Assets {
    /// Adds a file. `path` is plain text, not percent-encoded, such as `/style.css`; an `index.html`
    /// is its directory's answer too. Fails with a line that says why: it is no such path, or has
    /// a file already.
    pub fn add(&mut self, path: &str, bytes: Cow<'static, [u8]>) -> Result<(), String> {
        let is_file = !path.ends_with('/') && !path.contains('\0');
        let encoded = path::encode(path.as_bytes());
        let is_clean = path::clean(&encoded).is_some_and(|clean| *clean == *path.as_bytes());
        if !is_file || !is_clean {
            return Err(format!("asset {path:?} is not the path of a file such as /style.css"));
        }
        if self.0.contains_key(path) {
            return Err(format!("asset {path:?} is there twice: leave one out"));
        }
        let bytes = match bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        };
        let asset = Asset::new(path, bytes);
        if let Some(directory) = path.strip_suffix(INDEX).filter(|rest| rest.ends_with('/')) {
            self.0.insert(directory.into(), asset.clone());
        }
        self.0.insert(path.into(), asset);
        Ok(())
    }

    /// The answer for this path as it was sent, if there is such a file. `known` are the values of
    /// If-None-Match.
    fn answer<'a>(
        &self,
        method: &str,
        sent: &str,
        known: impl IntoIterator<Item = &'a [u8]>,
    ) -> Option<Response<ReplyBody>> {
        if self.0.is_empty() {
            return None;
        }
        let path = path::clean(sent.as_bytes())?;
        let asset = self.0.get(std::str::from_utf8(&path).ok()?)?;
        Some(match method {
            "GET" | "HEAD" => asset.answer(method == "GET", known),
            _ => not_allowed(),
        })
    }
}

impl Asset {
    fn new(path: &str, bytes: Bytes) -> Asset {
        let guess = mime_guess::from_path(path).first_or_octet_stream();
        let is_text = guess.type_() == "text" && guess.get_param("charset").is_none();
        let kind = if is_text { format!("{guess}; charset=utf-8") } else { guess.to_string() };
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        let tag = format!("\"{:x}-{:016x}\"", bytes.len(), hasher.finish());
        let value = |text: String| HeaderValue::try_from(text).expect("plain letters");
        Asset { bytes, kind: value(kind), tag: value(tag) }
    }

    fn answer<'a>(
        &self,
        wants_body: bool,
        known: impl IntoIterator<Item = &'a [u8]>,
    ) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::Full(None));
        let headers = response.headers_mut();
        headers.insert(ETAG, self.tag.clone());
        if known.into_iter().any(|list| names(list, self.tag.as_bytes())) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(CONTENT_TYPE, self.kind.clone());
        headers.insert(CONTENT_LENGTH, self.bytes.len().into());
        if wants_body {
            *response.body_mut() = ReplyBody::full(self.bytes.clone());
        }
        response
    }
}

/// Whether If-None-Match's list has this tag, compared weakly (RFC 9110, section 13.1.2). Our tags
/// hold no comma, so one within a tag of somebody else's does no harm.
fn names(list: &[u8], tag: &[u8]) -> bool {
    list.split(|c| *c == b',')
        .map(<[u8]>::trim_ascii)
        .any(|one| one == b"*" || one.strip_prefix(b"W/").unwrap_or(one) == tag)
}

fn not_allowed() -> Response<ReplyBody> {
    let text = "Only GET and HEAD are possible here.\n";
    let mut response = Response::new(ReplyBody::full(text.into()));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// Gives the process its assets, once.
pub fn install(assets: Assets) {
    let _ = ASSETS.set(assets);
}

/// Whether the process has assets.
pub fn any() -> bool {
    ASSETS.get().is_some_and(|assets| !assets.0.is_empty())
}

/// The answer for this path as it was sent, if the process has such a file; a client whose request
/// has a body, which nobody reads, is told that its connection ends.
pub fn answer<'a>(
    method: &str,
    path: &str,
    known: impl IntoIterator<Item = &'a [u8]>,
    has_body: bool,
) -> Option<Response<ReplyBody>> {
    let mut response = ASSETS.get()?.answer(method, path, known)?;
    if has_body {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body;

    fn assets(paths: &[&str]) -> Assets {
        let mut assets = Assets::default();
        paths.iter().for_each(|path| assets.add(path, path.as_bytes().to_vec().into()).unwrap());
        assets
    }

    /// Status, content type and length of the body.
    fn ask(assets: &Assets, method: &str, path: &str, known: &str) -> Option<(u16, String, u64)> {
        let response = assets.answer(method, path, [known.as_bytes()])?;
        let kind = response.headers().get(CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap());
        let length = response.body().size_hint().exact().unwrap();
        Some((response.status().as_u16(), kind.into(), length))
    }

    #[test]
    fn exact_paths_answer() {
        let all = assets(&["/a.css", "/my file.bin", "/docs/index.html", "/logo.svg", "/é"]);
        let get = |path| ask(&all, "GET", path, "");
        assert_eq!(get("/a.css"), Some((200, "text/css; charset=utf-8".into(), 6)));
        assert_eq!(get("/%61.css"), get("/a.css"));
        assert_eq!(get("/my%20file.bin"), Some((200, "application/octet-stream".into(), 12)));
        assert_eq!(get("/docs/"), Some((200, "text/html; charset=utf-8".into(), 16)));
        assert_eq!(get("/docs/index.html"), get("/docs/"));
        assert_eq!(get("/logo.svg").unwrap().1, "image/svg+xml");
        assert_eq!(get("/%C3%A9").unwrap().0, 200);
        for elsewhere in ["/", "/docs", "/a.css/", "/A.css", "*", "/a%2ecss%00", "/docs%2F"] {
            assert_eq!(get(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(ask(&Assets::default(), "GET", "/", ""), None);
    }

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        let all = assets(&["/a.txt"]);
        let tag = all.0["/a.txt"].tag.to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".into()] {
            assert_eq!(ask(&all, "GET", "/a.txt", &known), Some((304, String::new(), 0)));
        }
        assert_eq!(ask(&all, "GET", "/a.txt", "\"x\"").unwrap().0, 200);
        assert_ne!(assets(&["/b.txt"]).0["/b.txt"].tag, tag);
    }

    #[test]
    fn only_reading_is_possible() {
        let all = assets(&["/a.txt"]);
        let head = all.answer("HEAD", "/a.txt", []).unwrap();
        assert_eq!(
            (head.body().is_end_stream(), &head.headers()[CONTENT_LENGTH]),
            (true, &6.into())
        );
        assert_eq!(ask(&all, "POST", "/a.txt", "").unwrap().0, 405);
    }

    #[test]
    fn paths_are_judged() {
        let add = |path| assets(&["/a"]).add(path, Cow::default()).unwrap_err();
        for wrong in ["", "a", "/", "/a/", "//a", "/../a", "/./a", "/a\0"] {
            assert!(add(wrong).contains("such as /style.css"), "{wrong:?}");
        }
        assert!(add("/a").contains("twice"));
        assets(&["/a"]).add("/100%", Cow::default()).unwrap();
    }
}
