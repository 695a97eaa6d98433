//! Thread-specific data.
