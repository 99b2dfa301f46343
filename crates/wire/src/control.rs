//! Placeholder while the supervisor's messages are being written.
