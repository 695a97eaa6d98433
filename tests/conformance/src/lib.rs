//! One generic suite per seam trait.
