//! See the workspace README.
