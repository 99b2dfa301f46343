//! Why a request is refused.

/// What is wrong with a request. Nothing of its connection is run after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A line of the head, or of the chunked body, ends in a line feed alone.
    BareLineFeed,
    /// A line of the head begins with a blank: folded, or before the first field.
    Folded,
    /// More than one Content-Length.
    Lengths,
    /// Content-Length is no decimal number of bytes.
    BadLength,
    /// Content-Length beside Transfer-Encoding.
    LengthAndCoding,
    /// A Transfer-Encoding other than one `chunked`.
    BadCoding,
    /// Transfer-Encoding in HTTP/1.0, which has none.
    CodingTooNew,
    /// A chunk that is malformed.
    BadChunk,
    /// HTTP/1.1 without Host.
    NoHost,
    /// More than one Host.
    Hosts,
    /// A Host that is no host and port.
    BadHost,
    /// A target of another form than its method allows, or of another scheme than HTTP's.
    BadTarget,
    /// A target with a fragment.
    Fragment,
    /// An encoded NUL in the path.
    Nul,
    /// CONNECT: this is no proxy.
    Connect,
    /// The path is not under the prefix that the app has.
    NotHere,
    /// A FastCGI record of another version than 1.
    BadVersion,
    /// A FastCGI record whose content is not what its type says.
    BadRecord,
    /// FastCGI names and values that are longer than what holds them.
    BadPairs,
    /// Not an SCGI request.
    BadScgi,
    /// A block of variables that is longer than the limit.
    HeadTooLong,
    /// No REQUEST_METHOD.
    NoMethod,
    /// A REQUEST_METHOD that is no token.
    BadMethod,
    /// A path without a slash at its beginning.
    BadPath,
    /// A control character where HTTP has none.
    Control,
}

impl Fault {
    /// The status of the refusal.
    pub fn status(self) -> u16 {
        match self {
            // RFC 9110, section 15.6.2: a method that no resource here supports.
            Fault::Connect => 501,
            Fault::NotHere => 404,
            // RFC 6585, section 5.
            Fault::HeadTooLong => 431,
            _ => 400,
        }
    }

    /// One sentence for the client.
    pub fn text(self) -> &'static str {
        match self {
            Fault::BareLineFeed => "A line ends in LF alone: lines end in CR LF.\n",
            Fault::Folded => "A header line begins with a blank: headers are not folded.\n",
            Fault::Lengths => "There is more than one Content-Length: send one.\n",
            Fault::BadLength => "The Content-Length is not a number of bytes.\n",
            Fault::LengthAndCoding => {
                "There is a Content-Length beside a Transfer-Encoding: send one of them.\n"
            }
            Fault::BadCoding => "The only Transfer-Encoding taken is one \"chunked\".\n",
            Fault::CodingTooNew => "HTTP/1.0 has no Transfer-Encoding: send a Content-Length.\n",
            Fault::BadChunk => "The chunked body is malformed.\n",
            Fault::NoHost => "The Host is missing: HTTP/1.1 requires one.\n",
            Fault::Hosts => "There is more than one Host: send one.\n",
            Fault::BadHost => "The Host is not a host name or address with an optional port.\n",
            Fault::BadTarget => "The request target is of a form that its method does not allow.\n",
            Fault::Fragment => "The request target has a fragment: leave out # and what follows.\n",
            Fault::Nul => "The path contains NUL.\n",
            Fault::Connect => "CONNECT is not supported: this is no proxy.\n",
            Fault::NotHere => "There is nothing here: the app lies under its prefix.\n",
            Fault::BadVersion => "This is not FastCGI: a record's version is not 1.\n",
            Fault::BadRecord => "The content of a FastCGI record is not of its type.\n",
            Fault::BadPairs => "The FastCGI variables are cut: a length says more than there is.\n",
            Fault::BadScgi => {
                "This is not SCGI: send a netstring of variables, CONTENT_LENGTH first and SCGI=1.\n"
            }
            Fault::HeadTooLong => "The variables of the request are too long.\n",
            Fault::NoMethod => "The REQUEST_METHOD is missing.\n",
            Fault::BadMethod => "The REQUEST_METHOD is not a token.\n",
            Fault::BadPath => "SCRIPT_NAME, PATH_INFO or the path does not begin with a slash.\n",
            Fault::Control => "A variable has a control character in it.\n",
        }
    }
}
