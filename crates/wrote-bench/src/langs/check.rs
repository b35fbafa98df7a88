//! Whether what a program left in the file is what it was to write there.
