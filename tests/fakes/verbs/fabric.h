// SPDX-License-Identifier: Apache-2.0

// The fabric that this process belongs to: a mapping that it shares with the other processes whose
// FAKE_VERBS_FABRIC names the same folder, or has alone.
#pragma once

#include <cstdint>
#include <string>

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Joins the fabric at the first call; the child of a fork() joins anew. Ends the process where
/// that is impossible.
Fabric& fabric();

/// The entry of this process.
SharedProcess& this_process();
Index this_process_index();

/// The folder of the fabric; empty for a private one.
const std::string& fabric_folder();

/// Whether objects that a caller has are its own: not those of the parent that it was forked from.
bool is_own_process(Index process);

/// Holds the mutex of the fabric. A holder that was killed leaves what it has done so far.
class Lock {
   public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

/// Memory of the heap; the caller holds the lock. 0 where there is none left.
uint64_t allocate(uint64_t bytes);
void release(uint64_t offset, uint64_t bytes);

/// What is at an offset.
template <typename T>
T* at(uint64_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(&fabric()) + offset);
}

/// Whether a process of the fabric still runs. The caller holds the lock.
bool is_alive(Index process);

/// Frees all that ended processes have left; the caller holds the lock.
void remove_ended_processes();

/// Adds to a counter of a process.
void count(uint64_t& counter, uint64_t by = 1);
void discount(uint64_t& counter, uint64_t by = 1);

/// The monotonic clock.
uint64_t now_ns();

/// An environment variable as a number.
uint64_t environment_number(const char* name, uint64_t otherwise);

/// Prints a line on stderr if FAKE_VERBS_VERBOSE is 1: which rule was violated, by what.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

/// A free entry of a table; kNone if there is none. The caller marks it as used.
template <typename T>
Index free_entry(T* table, Index& end, Index limit, Index first = 0) {
    if (end < first) end = first;
    for (Index i = first; i < end; ++i) {
        if (!table[i].used) return i;
    }
    return end < limit ? end++ : kNone;
}

}  // namespace pccl::fake_verbs
