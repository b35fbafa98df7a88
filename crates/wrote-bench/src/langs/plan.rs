//! What will be run, in which order, and what it takes of the disk and of the time.
