//! What `SecureRandom` makes, straight from the kernel each time: nothing is kept that two
//! interpreters with the same memory could share.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};

const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Random bytes.
pub fn bytes(count: usize) -> Result<Vec<u8>, getrandom::Error> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Two digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// With `+`, `/` and padding.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// With `-` and `_`.
pub fn urlsafe_base64(bytes: &[u8], padding: bool) -> String {
    if padding { URL_SAFE.encode(bytes) } else { URL_SAFE_NO_PAD.encode(bytes) }
}

/// A version 4 UUID, RFC 9562 section 5.4.
pub fn uuid() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// A number below `limit`, all alike; 0 for a limit of 0.
pub fn below(limit: u64) -> Result<u64, getrandom::Error> {
    // What is left above the highest multiple would make small numbers likelier.
    let fair = u64::MAX - u64::MAX % limit.max(1);
    loop {
        let number = getrandom::u64()?;
        if number < fair {
            return Ok(number % limit.max(1));
        }
    }
}

/// At least 0.0 and below 1.0, with 53 bits.
pub fn fraction() -> Result<f64, getrandom::Error> {
    #[expect(clippy::cast_precision_loss)] // 53 bits are what a float holds.
    Ok((getrandom::u64()? >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Letters and digits.
pub fn alphanumeric(count: usize) -> Result<String, getrandom::Error> {
    let letter = |_| below(62).map(|at| char::from(ALPHANUMERIC[usize::try_from(at).unwrap_or(0)]));
    (0..count).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_right() {
        assert_eq!(hex(&[0, 0xab]), "00ab");
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
        assert_eq!(urlsafe_base64(&[0xfb, 0xff], false), "-_8");
        assert_eq!(urlsafe_base64(&[0xfb, 0xff], true), "-_8=");
        let uuid = uuid().unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!("89ab".contains(&uuid[19..20]));
        assert!(alphanumeric(200).unwrap().bytes().all(|b| b.is_ascii_alphanumeric()));
    }

    #[test]
    fn numbers_keep_their_limits() {
        for _ in 0..1_000 {
            assert!(below(3).unwrap() < 3);
            assert!((0.0..1.0).contains(&fraction().unwrap()));
        }
        assert_eq!(below(0).unwrap(), 0);
        assert_ne!(bytes(16).unwrap(), bytes(16).unwrap());
    }
}
