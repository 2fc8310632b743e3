//! Real connections.
