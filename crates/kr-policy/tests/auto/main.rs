//! The automatic policy seen from outside: the choice as a table, and the rules it may never break.

mod laws;
mod support;
mod table;
