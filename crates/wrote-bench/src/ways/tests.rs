//! Every way leaves the right bytes and nothing else, and says what it is.
