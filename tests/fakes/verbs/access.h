// SPDX-License-Identifier: Apache-2.0

// Memory of the processes of the fabric: keys, bounds, rights, and copies. The caller holds the
// lock.
#pragma once

#include <span>
#include <vector>

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Bytes of one process.
struct Piece {
    uint64_t address;
    uint64_t length;
};

/// The registered region of a key that a QP may use in a range, with all of `rights`; null, with a
/// complaint, if there is none.
const SharedMr* check_key(const SharedQp& qp, uint32_t key, uint64_t address, uint64_t length,
                          uint32_t rights, bool remote);

/// The elements of a list as pieces; false if one is not covered by its key.
bool check_list(const SharedQp& qp, std::span<const ibv_sge> list, uint32_t rights,
                std::vector<Piece>& pieces);

/// Copies from pieces of one process to those of another, in order; the last bytes become visible
/// last. 0, EFAULT, or ESRCH where a process is ending.
int copy(Index from, std::span<const Piece> source, Index to, std::span<const Piece> target,
         uint64_t length);

/// Copies between this process and another one, likewise.
int read_memory(Index from, uint64_t address, void* into, uint64_t length);
int write_memory(Index to, uint64_t address, const void* bytes, uint64_t length);

/// An atomic operation on 8 bytes, likewise; the value before in `before`.
int atomic_memory(Index process, uint64_t address, const SendWqe& request, uint64_t& before);

}  // namespace pccl::fake_verbs
