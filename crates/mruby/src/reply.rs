//! What the app returns, as reply frames: status, headers, then the body as it comes.

use crate::exception::Exception;
use crate::interp::Interp;
use crate::serving::{self, Serving};
use crate::value::{Kind, Value};
use wire::frame;
use worker::Seat;
use worker::head::{Field, Rules, is_name, is_value_byte};

fn bad(message: impl Into<String>) -> Exception {
    Exception::new("Oribi::BadReply", message)
}

/// Writes the reply of an app; what it returned is judged before anything goes out.
pub fn send(interp: &Interp, returned: Value, is_head: bool) -> Result<(), Exception> {
    if returned.len() != 3 {
        let what = returned.inspect().unwrap_or_default();
        let what: String = what.chars().take(100).collect();
        return Err(bad(format!("the app returned {what}, not [status, headers, body]")));
    }
    let (status, headers, body) = (returned.entry(0), returned.entry(1), returned.entry(2));
    let sent = write(interp, status, headers, body, is_head);
    // Whether or not it could be written, the body is closed; and the reply ends where nothing more
    // can come.
    let late = serving::with(|serving| serving.has_errors).unwrap_or(false);
    if sent.is_ok() && !late {
        end();
    }
    let closed =
        if body.responds_to("close") { body.call("close", &[]).map(|_| ()) } else { Ok(()) };
    if sent.is_ok() && late {
        end();
    }
    sent.and(closed)
}

fn end() {
    serving::with(|serving| {
        serving.write_mark(frame::END);
        serving.seat.finish();
    });
}

fn write(
    interp: &Interp,
    status: Value,
    headers: Value,
    body: Value,
    is_head: bool,
) -> Result<(), Exception> {
    let number = match status.kind() {
        Kind::Int => status.int()?,
        _ => status.call("to_i", &[])?.int()?,
    };
    let headers = fields(headers)?;
    let status = serving::with(|serving| make_head(&mut serving.seat, number, &headers));
    let status = status.ok_or_else(|| bad("there is no request"))??;
    let bodiless = matches!(status, 204 | 304);
    let plain = body.kind() == Kind::Array;
    if !plain && !body.responds_to("each") {
        return Err(bad(format!("the app's body is {} and has no each", body.class_name())));
    }
    let parts = if plain { parts(body)? } else { Vec::new() };
    serving::with(|serving| {
        serving.write_head();
        if bodiless {
            return;
        }
        for part in parts {
            serving.write(frame::BODY, &part);
        }
        if !plain {
            serving.seat.publish();
        }
    });
    if !plain && !bodiless && !is_head {
        interp.class("Oribi")?.value().call("stream", &[body])?;
    }
    Ok(())
}

/// The parts of an Array, before the head goes out.
fn parts(body: Value) -> Result<Vec<Vec<u8>>, Exception> {
    let one = |part: Value| part.as_bytes().ok_or_else(|| serving::not_a_part(part));
    body.items().into_iter().map(one).collect()
}

/// Header lines: names and values.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Names and values as lines.
fn fields(headers: Value) -> Result<Fields, Exception> {
    if headers.kind() != Kind::Hash {
        return Err(bad(format!("the app's headers are {}, not a Hash", headers.class_name())));
    }
    let mut fields = Vec::new();
    for (name, value) in headers.pairs()? {
        let name = name.as_bytes().ok_or_else(|| {
            bad(format!("a header name of the app's is of class {}, not String", name.class_name()))
        })?;
        // What is the server's business, not the client's.
        if name.starts_with(b"rack.") {
            continue;
        }
        if !is_name(&name) {
            return Err(bad(format!(
                "the app's header name \"{}\" is not one",
                name.escape_ascii()
            )));
        }
        let values = if value.kind() == Kind::Array { value.items() } else { vec![value] };
        for value in values {
            for line in lines(&name, value)? {
                fields.push((name.clone(), line));
            }
        }
    }
    Ok(fields)
}

/// One value, which may be several lines.
fn lines(name: &[u8], value: Value) -> Result<Vec<Vec<u8>>, Exception> {
    let name = name.escape_ascii();
    let Some(text) = value.as_bytes() else {
        let class = value.class_name();
        return Err(bad(format!("the app's header {name} is of class {class}, not String")));
    };
    let lines = text.split(|byte| *byte == b'\n');
    if let Some(wrong) = lines.clone().flatten().find(|byte| !is_value_byte(**byte)) {
        return Err(bad(format!("the app's header {name} holds the character 0x{wrong:02x}")));
    }
    let whole = !text.contains(&b'\n');
    Ok(lines.filter(|line| whole || !line.is_empty()).map(<[u8]>::to_vec).collect())
}

fn make_head(
    seat: &mut Seat,
    status: i64,
    fields: &[(Vec<u8>, Vec<u8>)],
) -> Result<u16, Exception> {
    let mut rules = Rules::new(status).map_err(|why| bad(why.to_string()))?;
    seat.start_head(rules.status());
    for (name, value) in fields {
        match rules.judge(name, value).map_err(|why| bad(why.to_string()))? {
            Field::Send => {}
            Field::Drop => continue,
            Field::Coded => return Err(bad("the app's body comes in a transfer coding")),
        }
        if !seat.push_field(name, value) {
            let name = name.escape_ascii();
            return Err(bad(format!("the app's header {name} is longer than 65535 bytes")));
        }
    }
    if seat.head().len() > frame::HEAD_MAX {
        let length = seat.head().len();
        return Err(bad(format!("the app's headers are {length} bytes long")));
    }
    Ok(rules.status())
}

/// The reply to a request that has ended with an exception, unless one has begun: then it is cut.
pub fn send_failure(serving: &mut Serving) {
    if !serving.seat.reply_started() {
        serving.seat.start_head(500);
        serving.seat.push_field(b"content-type", b"text/plain");
        serving.write_head();
        serving.write(frame::BODY, b"Internal Server Error\n");
        serving.write_mark(frame::END);
    }
    serving.seat.finish();
}
