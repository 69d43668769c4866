//! Stand-in for AMD's aqlprofile library, for emulated agents.
