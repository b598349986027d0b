// A one-sided transfer that is under way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/fork_bound.h"
#include "csrc/base/status.h"
#include "csrc/p2p/session_id.h"

namespace pccl::p2p {

class TransferRequest;

struct WorkStats {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t pieces = 0;  // that the blocks went as
    Duration taken{};          // so far, or from begin to end
    std::string path{};        // "shm, mapped", "tcp, by messages", ... (docs/p2p.md)
    std::string reasons{};     // why not by a faster one; empty: there is none
};

/// A handle, cheap to copy, safe from every thread. The transfer goes on when all are dropped. In a
/// child of fork() it is complete, with kUnavailable, and reaches nothing of the parent's.
class PCCL_API Work {
   public:
    explicit Work(std::shared_ptr<TransferRequest> request);

    /// kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const { return request_.check(); }
    /// Whether it has ended, well or not. One load.
    [[nodiscard]] bool is_complete() const;
    /// Goes on with it, for a moment, and says whether it has ended: for who asks again and again.
    [[nodiscard]] bool poll() const;
    /// How it ended, of one that is complete: kAborted for one that was given up; the errors of
    /// transport/rma.h. Never kTimeout: a connection that could not be made in time is lost.
    [[nodiscard]] Status status() const;
    /// Makes progress on it until it has ended, and says how. kTimeout names the peer, and leaves
    /// it going.
    [[nodiscard]] Status wait(Deadline deadline) const;
    /// Gives up what is not on its way yet, and returns at once: it ends soon, and only then is its
    /// memory free. No notification comes of it. Nothing where it is complete.
    void release() const;
    /// Whom it is with, and whom its errors are about.
    [[nodiscard]] const SessionId& peer() const;
    [[nodiscard]] WorkStats stats() const;
    /// "a read of 4096 bytes"
    [[nodiscard]] std::string to_string() const;

   private:
    ForkBound<TransferRequest> request_;
};

}  // namespace pccl::p2p
