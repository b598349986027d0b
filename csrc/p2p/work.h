// SPDX-License-Identifier: Apache-2.0

// Handle of a one-sided transfer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/fork_bound.h"
#include "csrc/p2p/session_id.h"

namespace pccl::p2p {

class TransferRequest;

struct WorkStats {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t pieces = 0;  // into which the blocks were joined or cut
    Duration taken{};          // so far, or from begin to end
    std::string path{};        // "shm, mapped", "tcp, by messages", ... (docs/reference/p2p.md)
    std::string reasons{};     // why no faster path was taken; empty: there is none
};

/// Handle of a posted transfer; cheap to copy, thread-safe. The transfer continues when all handles
/// are dropped. In a child of fork() it is complete with kUnavailable, and does not access the
/// parent's state.
class PCCL_API Work {
   public:
    explicit Work(std::shared_ptr<TransferRequest> request);

    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return request_.check(); }
    /// Returns whether the transfer has ended, with or without success. Costs one load.
    [[nodiscard]] bool is_complete() const;
    /// Makes progress for a moment, and returns whether the transfer has ended. Callers may poll
    /// with it.
    [[nodiscard]] bool poll() const;
    /// Returns the outcome; valid once complete. Errors: kAborted for a transfer that was given up,
    /// and those of transport/rma.h. It is never kTimeout: a connection that is not made in time
    /// counts as lost.
    [[nodiscard]] Status status() const;
    /// Makes progress until the transfer has ended, and returns its outcome. Returns kTimeout,
    /// which names the peer, after `deadline`; the transfer continues then.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives up the pieces that are not posted yet, and returns at once. The transfer ends soon;
    /// its memory is in use until then. It sends no notification. Does nothing where it is
    /// complete.
    void release() const;
    /// Returns the peer of the transfer, which its errors name.
    [[nodiscard]] const SessionId& peer() const;
    [[nodiscard]] WorkStats stats() const;
    /// Returns, for example, "a read of 4096 bytes".
    [[nodiscard]] std::string to_string() const;

   private:
    ForkBound<TransferRequest> request_;
};

}  // namespace pccl::p2p
