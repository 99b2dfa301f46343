//! Sockets and addresses as people write them, for settings that travel between processes.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use wire::settings::{Address, Socket};

/// For lists of addresses.
pub mod addresses {
    use super::*;

    pub fn serialize<S: Serializer>(all: &[Address], into: S) -> Result<S::Ok, S::Error> {
        into.collect_seq(all.iter().map(ToString::to_string))
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<Address>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| Address::parse(text).map_err(D::Error::custom)).collect()
    }
}

/// For lists of sockets.
pub mod sockets {
    use super::*;

    pub fn serialize<S: Serializer>(all: &[Socket], into: S) -> Result<S::Ok, S::Error> {
        into.collect_seq(all.iter().map(ToString::to_string))
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<Socket>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let read = |text: &String| Socket::parse(text).ok_or_else(|| D::Error::custom(text));
        texts.iter().map(read).collect()
    }
}
