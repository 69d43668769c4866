//! Functions that are exported but in no table: names of HSA 1.0, and one that was forgotten.

use core::ffi::c_void;

use crate::*;

functions! {
    SYMBOL: symbol, "In no table", since 5, 2;

    /// Deprecated name of `hsa_queue_load_read_index_scacquire`.
    fn hsa_queue_load_read_index_acquire(queue: *const hsa_queue_t) -> u64;
    /// Deprecated name of `hsa_queue_load_write_index_scacquire`.
    fn hsa_queue_load_write_index_acquire(queue: *const hsa_queue_t) -> u64;
    /// Deprecated name of `hsa_queue_store_write_index_screlease`.
    fn hsa_queue_store_write_index_release(queue: *const hsa_queue_t, value: u64);
    /// Deprecated name of `hsa_queue_cas_write_index_scacq_screl`.
    fn hsa_queue_cas_write_index_acq_rel(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Deprecated name of `hsa_queue_cas_write_index_scacquire`.
    fn hsa_queue_cas_write_index_acquire(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Deprecated name of `hsa_queue_cas_write_index_screlease`.
    fn hsa_queue_cas_write_index_release(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Deprecated name of `hsa_queue_add_write_index_scacq_screl`.
    fn hsa_queue_add_write_index_acq_rel(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Deprecated name of `hsa_queue_add_write_index_scacquire`.
    fn hsa_queue_add_write_index_acquire(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Deprecated name of `hsa_queue_add_write_index_screlease`.
    fn hsa_queue_add_write_index_release(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Deprecated name of `hsa_queue_store_read_index_screlease`.
    fn hsa_queue_store_read_index_release(queue: *const hsa_queue_t, value: u64);
    /// Deprecated name of `hsa_signal_load_scacquire`.
    fn hsa_signal_load_acquire(signal: hsa_signal_t) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_store_screlease`.
    fn hsa_signal_store_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_wait_scacquire`.
    fn hsa_signal_wait_acquire(
        signal: hsa_signal_t,
        condition: hsa_signal_condition_t,
        compare_value: hsa_signal_value_t,
        timeout_hint: u64,
        wait_state_hint: hsa_wait_state_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_exchange_scacq_screl`.
    fn hsa_signal_exchange_acq_rel(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_exchange_scacquire`.
    fn hsa_signal_exchange_acquire(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_exchange_screlease`.
    fn hsa_signal_exchange_release(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_cas_scacq_screl`.
    fn hsa_signal_cas_acq_rel(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_cas_scacquire`.
    fn hsa_signal_cas_acquire(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_cas_screlease`.
    fn hsa_signal_cas_release(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Deprecated name of `hsa_signal_add_scacq_screl`.
    fn hsa_signal_add_acq_rel(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_add_scacquire`.
    fn hsa_signal_add_acquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_add_screlease`.
    fn hsa_signal_add_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_subtract_scacq_screl`.
    fn hsa_signal_subtract_acq_rel(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_subtract_scacquire`.
    fn hsa_signal_subtract_acquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_subtract_screlease`.
    fn hsa_signal_subtract_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_and_scacq_screl`.
    fn hsa_signal_and_acq_rel(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_and_scacquire`.
    fn hsa_signal_and_acquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_and_screlease`.
    fn hsa_signal_and_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_or_scacq_screl`.
    fn hsa_signal_or_acq_rel(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_or_scacquire`.
    fn hsa_signal_or_acquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_or_screlease`.
    fn hsa_signal_or_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_xor_scacq_screl`.
    fn hsa_signal_xor_acq_rel(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_xor_scacquire`.
    fn hsa_signal_xor_acquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Deprecated name of `hsa_signal_xor_screlease`.
    fn hsa_signal_xor_release(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Asks for the largest image of an agent; the attribute is one of the image extension's.
    fn hsa_amd_image_get_info_max_dim(
        agent: hsa_agent_t,
        attribute: hsa_agent_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
}
