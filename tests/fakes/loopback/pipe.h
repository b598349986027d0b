// SPDX-License-Identifier: Apache-2.0

// Byte pipe between the two ends of a loopback link.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/ids.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/rma/registry.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/loopback/fault_plan.h"

namespace pccl::transport::loopback {

struct PipeArgs {
    LinkRequest request;
    std::size_t capacity = 64 * kKiB;
    FaultPlan faults;
    const Clock* clock = &system_clock();
    std::uint64_t ordinal = 0;  // number of earlier links with this request, so that each has
                                // faults of its own
};

/// Pipe. Thread-safe. It has one lock: it is for tests, not for speed.
///
/// The pipe is stricter than other links on purpose: bytes sent with Flush::kLater stay invisible
/// until a send with Flush::kNow, a flush, or a full pipe, so that a missing flush shows.
class Pipe {
   public:
    enum class End : std::size_t { kSender, kReceiver };

    explicit Pipe(const PipeArgs& args);

    [[nodiscard]] std::size_t capacity() const { return args_.capacity; }
    /// Attaches an end, which may be woken until leave(). `waiter` outlives that.
    void join(End end, Waiter& waiter, std::shared_ptr<RmaRegistry> memory);
    /// Returns the registry of the process at that end; null before join() and after leave().
    [[nodiscard]] std::shared_ptr<RmaRegistry> memory_of(End end);
    /// Returns the arguments, which all links of this direction share.
    [[nodiscard]] const PipeArgs& args() const { return args_; }
    /// Detaches an end: the other end finds its peer lost.
    void leave(End end);

    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush);
    Status flush(ChannelId channel);
    /// Appends the bytes that have arrived to `into`, and returns their number.
    Result<std::size_t> take(ChannelId channel, std::vector<std::byte>& into);
    /// Makes room for `count` more bytes.
    void free(ChannelId channel, std::size_t count);

   private:
    struct Segment {
        std::vector<std::byte> bytes;
        TimePoint arrives;
    };
    struct Stream {
        FaultDice send_faults;
        FaultDice receive_faults;
        std::vector<std::byte> held;  // sent, not flushed
        std::deque<Segment> segments = {};
        std::size_t unread = 0;  // sent, not freed
        TimePoint newest = {};
    };

    Stream& stream(ChannelId channel) { return streams_[static_cast<std::size_t>(channel)]; }
    [[nodiscard]] bool has_left(End end) const { return left_[static_cast<std::size_t>(end)]; }
    void publish(Stream& stream);
    void reset();
    void wake(End end);
    [[nodiscard]] Status lost(Rank peer) const;

    const PipeArgs args_;
    std::mutex mutex_;
    std::vector<Stream> streams_;
    std::array<Waiter*, 2> waiters_{};
    std::array<std::shared_ptr<RmaRegistry>, 2> memories_;
    std::array<bool, 2> left_{};
};

}  // namespace pccl::transport::loopback
