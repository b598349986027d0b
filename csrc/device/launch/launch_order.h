// Keeps the launches of a group one after the other, whatever streams and graphs they are in.
//
//     order.begin(stream)    the stream waits for all launches before
//     launch on `stream`
//     order.end(stream)      later launches wait for this one
//
// A replay of a graph counts as a launch, of which nobody here hears. So once something is captured
// there is one event for all: graphs wait for it before their first launch, and record it after
// their last; each launch outside of graphs does both. Two limits: of two captures at once each
// begins anew where they take turns; and what was last launched before the first capture, in a
// stream that takes part in it, is waited for outside of graphs alone.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// One call at a time.
class PCCL_API LaunchOrder {
   public:
    explicit LaunchOrder(sys::cuda::Driver& driver) : driver_(driver) {}

    Status begin(sys::cuda::Stream stream);
    Status end(sys::cuda::Stream stream);
    /// Returns when the GPU has done all launches, those of graphs as far as they are being
    /// replayed now. False where it has not by `deadline`, or that cannot be said: the last stream,
    /// which must still be there, is being captured.
    [[nodiscard]] bool await_all(Deadline deadline);

   private:
    using Stream = sys::cuda::Stream;
    Status begin_uncaptured(Stream stream);
    Status begin_captured(Stream stream);
    Status make_event();
    Status record(Stream stream);
    [[nodiscard]] bool await(sys::cuda::Event event, Deadline deadline);

    sys::cuda::Driver& driver_;
    std::uint64_t capture_ = 0;            // that the launch goes into
    std::optional<Stream> last_;           // of those in no graph
    std::uint64_t last_capture_ = 0;       // that something was launched into
    std::optional<Stream> last_captured_;  // there
    sys::cuda::GraphMark mark_;            // of all_done_ there
    // Once something is captured. Never destroyed: a graph may outlive the group.
    std::optional<sys::cuda::Event> all_done_;
    bool knows_last_ = false;  // all_done_ what is in last_
};

}  // namespace pccl::device
