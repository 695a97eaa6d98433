//! Global addresses: 64 bits that name a byte of any rank.
