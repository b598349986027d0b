// SPDX-License-Identifier: Apache-2.0

// Descriptors that become readable: of completion channels and of asynchronous events. Each is a
// FIFO in the folder of the fabric, which other processes write to, or a pipe where the fabric is
// private.
#pragma once

#include <cstdint>

namespace pccl::fake_verbs {

/// Makes one; `descriptor` is its read end. 0, with errno, where that is impossible. Takes no lock:
/// the caller holds it.
uint32_t make_wake(int* descriptor);

/// Closes this process's write end and removes the FIFO; the owner closes the read end.
void remove_wake(uint32_t number);

/// Writes a record to it. Records of one that is gone are lost.
void write_wake(uint32_t number, uint64_t record);

/// Starts the thread of this process that delivers what becomes due while all its threads sleep.
void start_timer();

/// Wakes the timers of all processes, as something becomes due earlier than before.
void wake_timers();

}  // namespace pccl::fake_verbs
