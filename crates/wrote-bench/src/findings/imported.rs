//! Findings on results of other tools: what their numbers leave out.
