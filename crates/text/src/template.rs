//! Templates as ERB has them, compiled to Ruby: `<% code %>`, `<%= value %>`, `<%# comment %>`,
//! `<%%` and `%%>` for the marks themselves. Lines of code are those of the template.

/// Which ends of lines leave no line behind: `trim_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// `-`: one behind `-%>`; blanks before `<%-`.
    pub explicit: bool,
    /// `>`: one behind any `%>`.
    pub after: bool,
    /// `<>`: one behind `%>` where the line begins with `<%`.
    pub whole_lines: bool,
}

impl Trim {
    /// What Ruby calls it; `None` for what is not known.
    pub fn from_mode(mode: &str) -> Option<Trim> {
        let (explicit, after, whole_lines) = match mode {
            "" | "0" => (false, false, false),
            "-" => (true, false, false),
            ">" | "1" => (false, true, false),
            "<>" | "2" => (false, false, true),
            _ => return None,
        };
        Some(Trim { explicit, after, whole_lines })
    }
}

/// The variable that takes the text.
pub const OUT: &str = "_erbout";

/// A mark that is never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// Where it opens; lines count from 1.
    pub line: usize,
}

/// Compiles a template to Ruby that adds to a string called [`OUT`].
pub fn compile(template: &[u8], trim: Trim) -> Result<Vec<u8>, Unclosed> {
    let mut code = Vec::with_capacity(template.len() * 2);
    let mut text = Vec::new();
    let mut rest = template;
    let mut starts_line = true;
    while let Some(at) = find(rest, b"<%") {
        let (before, tag) = (&rest[..at], &rest[at + 2..]);
        starts_line = if before.is_empty() { starts_line } else { before.ends_with(b"\n") };
        text.extend_from_slice(before);
        if let Some(after) = tag.strip_prefix(b"%") {
            text.extend_from_slice(b"<%");
            (rest, starts_line) = (after, false);
            continue;
        }
        let inner = tag.strip_prefix(b"-").filter(|_| trim.explicit);
        if inner.is_some() {
            let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
            let kept = text.len() - text.iter().rev().take_while(blank).count();
            if kept == 0 || text[kept - 1] == b'\n' {
                text.truncate(kept);
            }
        }
        let inner = inner.unwrap_or(tag);
        let line = 1 + newlines(&template[..template.len() - rest.len() + at]);
        let (content, mut after) = split_at_end(inner).ok_or(Unclosed { line })?;
        let (content, trims) = match content.strip_suffix(b"-") {
            Some(content) if trim.explicit => (content, true),
            _ => (&content[..], trim.after || trim.whole_lines && starts_line),
        };
        put_text(&mut code, &mut text);
        put_tag(&mut code, content);
        let newline = after.strip_prefix(b"\n").or_else(|| after.strip_prefix(b"\r\n"));
        if let Some(behind) = newline.filter(|_| trims) {
            code.push(b'\n');
            after = behind;
            starts_line = true;
        } else {
            starts_line = false;
        }
        rest = after;
    }
    text.extend_from_slice(rest);
    put_text(&mut code, &mut text);
    Ok(code)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// What stands before `%>`, in which `%%>` stands for `%>`, and what follows it.
fn split_at_end(tag: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut content = Vec::new();
    let mut rest = tag;
    loop {
        let at = find(rest, b"%>")?;
        content.extend_from_slice(&rest[..at]);
        rest = &rest[at + 2..];
        if content.last() != Some(&b'%') {
            return Some((content, rest));
        }
        content.push(b'>');
    }
}

/// Adds `text` to the string, and as many line ends to the code as the text has.
fn put_text(code: &mut Vec<u8>, text: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    code.extend_from_slice(format!("{OUT} << \"").as_bytes());
    for byte in text.iter() {
        match byte {
            b'"' | b'\\' | b'#' => code.extend([b'\\', *byte]),
            b'\n' => code.extend_from_slice(b"\\n"),
            b'\r' => code.extend_from_slice(b"\\r"),
            0 => code.extend_from_slice(b"\\x00"),
            _ => code.push(*byte),
        }
    }
    code.extend_from_slice(b"\"; ");
    code.extend(std::iter::repeat_n(b'\n', newlines(text)));
    text.clear();
}

fn put_tag(code: &mut Vec<u8>, content: &[u8]) {
    match content {
        [b'#', comment @ ..] => code.extend(std::iter::repeat_n(b'\n', newlines(comment))),
        [b'=', value @ ..] => {
            code.extend_from_slice(format!("{OUT} << ((").as_bytes());
            code.extend_from_slice(value);
            // A comment in the value must not swallow the end.
            let ends: &[u8] = if value.contains(&b'#') { b"\n).to_s); " } else { b").to_s); " };
            code.extend_from_slice(ends);
        }
        _ => {
            code.extend_from_slice(content);
            code.extend_from_slice(if content.contains(&b'#') { b"\n" } else { b"; " });
        }
    }
}

/// `ERB::Util.html_escape`.
pub fn html_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            _ => out.push(*byte),
        }
    }
    out
}

/// `ERB::Util.url_encode`.
pub fn url_encode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 4);
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruby(template: &str, mode: &str) -> String {
        let trim = Trim::from_mode(mode).expect("it is known");
        String::from_utf8(compile(template.as_bytes(), trim).expect("it is closed")).unwrap()
    }

    #[test]
    fn templates_become_ruby() {
        assert_eq!(ruby("", ""), "");
        assert_eq!(ruby("a \"#{b}\"\\\n", ""), "_erbout << \"a \\\"\\#{b}\\\"\\\\\\n\"; \n");
        assert_eq!(ruby("<%= x %>!", ""), "_erbout << (( x ).to_s); _erbout << \"!\"; ");
        assert_eq!(ruby("<% x %>\n", ""), " x ; _erbout << \"\\n\"; \n");
        assert_eq!(ruby("<%# x\n%>", ""), "\n");
        assert_eq!(ruby("<%% %%>", ""), "_erbout << \"<% %%>\"; ");
        assert_eq!(ruby("<%= '%%>' %>", ""), "_erbout << (( '%>' ).to_s); ");
        assert_eq!(ruby("<% a # b %>", ""), " a # b \n");
    }

    #[test]
    fn ends_of_lines_are_trimmed() {
        assert_eq!(
            ruby("a\n  <%- x -%>\nb", "-"),
            "_erbout << \"a\\n\"; \n x ; \n_erbout << \"b\"; "
        );
        assert_eq!(ruby("a <%- x %>", "-"), "_erbout << \"a \"; \n x ; ".replace('\n', ""));
        assert_eq!(ruby("<% x %>\nb", ">"), " x ; \n_erbout << \"b\"; ");
        assert_eq!(
            ruby("<% x %>\na<% y %>\n", "<>"),
            " x ; \n_erbout << \"a\";  y ; _erbout << \"\\n\"; \n"
        );
        assert_eq!(Trim::from_mode("?"), None);
    }

    #[test]
    fn an_open_mark_is_found() {
        assert_eq!(compile(b"a\n<%= b", Trim::default()), Err(Unclosed { line: 2 }));
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(html_escape(b"<a b='c\"&'>"), b"&lt;a b=&#39;c&quot;&amp;&#39;&gt;");
        assert_eq!(url_encode("a b/é~".as_bytes()), b"a%20b%2F%C3%A9~");
    }
}
