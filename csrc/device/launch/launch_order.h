// SPDX-License-Identifier: Apache-2.0

// Order of a group's launches: one after the other across all streams and graphs.
//
//     order.begin(stream)    the stream waits for all launches before
//     launch on `stream`
//     order.end(stream)      later launches wait for this one
//
// A replay of a graph counts as a launch, but this class does not observe it. Therefore, after the
// first capture, one event orders all: graphs wait for it before their first launch and record it
// after their last one; each launch outside of graphs does both. There are two limits. When two
// captures alternate, each of them begins anew at every turn. The last launch before the first
// capture, if its stream takes part in that capture, is waited for only outside of graphs.
#pragma once

#include <cstdint>
#include <optional>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Not thread-safe: one call at a time.
class PCCL_API LaunchOrder {
   public:
    explicit LaunchOrder(sys::cuda::Driver& driver) : driver_(driver) {}

    Status begin(sys::cuda::Stream stream);
    Status end(sys::cuda::Stream stream);
    /// Returns true when the GPU has finished all launches, including graphs that are being
    /// replayed now. Returns false at `deadline`, or where the state is unknown because the last
    /// stream, which must still exist, is being captured.
    [[nodiscard]] bool await_all(Deadline deadline);

   private:
    using Stream = sys::cuda::Stream;
    Status begin_uncaptured(Stream stream);
    Status begin_captured(Stream stream);
    Status make_event();
    Status record(Stream stream);
    [[nodiscard]] bool await(sys::cuda::Event event, Deadline deadline);

    sys::cuda::Driver& driver_;
    std::uint64_t capture_ = 0;            // capture that the launch goes into
    std::optional<Stream> last_;           // last stream outside of graphs
    std::uint64_t last_capture_ = 0;       // last capture with a launch
    std::optional<Stream> last_captured_;  // there
    sys::cuda::GraphMark mark_;            // node of all_done_ in that capture
    // Exists after the first capture. It is never destroyed: a graph may outlive the group.
    std::optional<sys::cuda::Event> all_done_;
    bool is_last_included_ = false;  // all_done_ includes the work in last_
};

}  // namespace pccl::device
