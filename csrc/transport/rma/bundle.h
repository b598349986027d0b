// SPDX-License-Identifier: Apache-2.0

// Link of several streams to one peer: a main one, and lanes for large transfers, which helper
// threads progress where cores are idle.
//
//     initiator                                             target
//       | -- main: small requests, all notifications -------> |
//       | -- main: so many requests are on lane i ----------> |  progresses the lane until these
//       | -- lane 0: requests for parts of large posts -----> |  are answered
//       | -- lane 1: ... -----------------------------------> |
//
// Each stream is a link of over_links.h. Parts of large posts in memory of hosts go to the lanes
// with the fewest bytes under way; all else goes over the main stream. A notification behind parts
// on lanes waits here until all requests before it are answered, which is after the target has
// placed their bytes.
// Requests on lanes are announced on the main stream, so that a link with idle lanes costs no
// system call for them.
//
// One thread at a time calls the functions of the link. While it makes progress, helpers take part
// (sys/cpu/helper_pool.h), with one thread at a time on each lane; they have returned when the call
// returns. Both ends count the bytes on lanes alike, so that both choose their helpers
// (HelperCount) for the same parts of the work.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/sys/cpu/helper_count.h"
#include "csrc/sys/cpu/shift.h"
#include "csrc/sys/host.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/held_notifications.h"
#include "csrc/transport/rma/posts.h"
#include "csrc/transport/rma/stream_link.h"
#include "csrc/transport/sticky_status.h"

namespace pccl::transport {

/// Threads that may help the caller of a bundle, and the cores for them.
struct RmaHelpers {
    int most = 0;
    sys::CoreSet cores{};
};

class PCCL_API RmaBundle final : public RmaLink {
   public:
    /// Posts are large from so many bytes on, with those that the main stream has under way.
    static constexpr std::uint64_t kLarge = 4 * kMiB;

    RmaBundle(RmaStreams streams, std::shared_ptr<RmaRegistry> registry, const RmaHelpers& helpers);
    ~RmaBundle() override;
    RmaBundle(const RmaBundle&) = delete;
    RmaBundle& operator=(const RmaBundle&) = delete;

    /// Adds lane `number`, below kMostRmaLanes and not there yet. The peer adds the other ends of
    /// the streams under the same number, possibly later.
    void add_lane(std::size_t number, RmaStreams streams);

    [[nodiscard]] TransportKind kind() const override { return main_.kind(); }
    Result<std::size_t> post(RmaOp op, std::span<const RmaPiece> pieces,
                             std::uint64_t ticket) override;
    Result<std::size_t> post_run(RmaOp op, const RmaRun& run, std::uint64_t ticket) override;
    Result<bool> notify(std::span<const std::byte> notification) override;
    [[nodiscard]] bool is_flushed() const override;
    Result<std::size_t> poll(std::span<RmaCompletion> into) override;
    Status advance() override;
    [[nodiscard]] bool has_moved() const override { return moved_; }
    [[nodiscard]] bool awaits_copies() const override { return main_.awaits_copies(); }
    Result<std::optional<std::vector<std::byte>>> next_notification() override;
    std::optional<std::vector<std::byte>> preview_notification() override {
        return main_.preview_notification();
    }
    Status look() override;
    void abort(const Status& reason) override;

   private:
    struct Lane;
    struct PartLoad {
        std::size_t pieces = 0;
        std::uint64_t bytes = 0;
    };
    /// Part of a post, on a lane.
    struct Part {
        RmaPost* post = nullptr;
        Lane* lane = nullptr;
        PartLoad load{};
        bool is_over = false;
        bool has_failed = false;
    };
    /// Pieces of a part.
    struct PartPieces {
        RmaOp op;
        std::span<const RmaPiece> pieces;
        std::uint64_t bytes;
    };

    [[nodiscard]] Status check() const { return status_.is_set() ? status_.get() : Status::ok(); }
    /// Calls `use` for each lane that is there.
    template <typename Use>
    void for_lanes(const Use& use) const {
        for (const auto& lane : lanes_)
            if (lane != nullptr) use(*lane);
    }

    // Posts:

    [[nodiscard]] bool is_large(std::span<const RmaPiece> pieces) const;
    [[nodiscard]] bool has_room() const;
    /// Returns the lane with the fewest bytes under way, of those that have not failed.
    [[nodiscard]] Lane& emptiest() const;
    Result<std::size_t> spread(RmaOp op, std::span<const RmaPiece> pieces, std::uint64_t ticket);
    Result<std::size_t> spread_run(RmaOp op, const RmaRun& run, std::uint64_t ticket);
    /// Posts pieces from the front, one at least, and returns how many.
    std::size_t spread_front(RmaOp op, std::span<const RmaPiece> pieces, RmaPost& post);
    /// Posts a long piece in parts.
    void cut(RmaOp op, const RmaPiece& piece, RmaPost& post);
    /// Posts a part, or the first of its pieces; returns how many. A part that its lane refuses
    /// fails later.
    std::size_t post_part(const PartPieces& part, RmaPost& post);
    void add_part(Lane& lane, RmaPost& post, const PartLoad& load);

    // Progress:

    /// Announces requests on lanes, makes progress on these, and sends the notifications behind
    /// them.
    void progress_lanes();
    [[nodiscard]] bool are_lanes_busy();
    void progress_alone();
    void progress_with(int helpers);
    void work(sys::Shift& shift, bool is_caller);
    /// Makes progress on every `step`-th lane from `first` on that is busy and that no other thread
    /// progresses; returns whether anything moved.
    bool progress_share(std::size_t first, std::size_t step);
    static bool progress_lane(Lane& lane);
    /// Makes progress on the main stream during a shift; returns whether anything moved.
    bool progress_main(sys::Shift& shift);
    /// Records what the main stream's progress has shown.
    void note_main();
    /// Takes the answers that the peer sent on lanes before its main stream ended.
    void drain_lanes();
    void announce();
    /// Handles the completions that the lanes have, and their failures.
    void collect();
    void end_part(const RmaCompletion& completion);
    void release_notifications();
    void fail(const Status& why);
    /// Ends everything on the lanes of a failed link.
    void end_lanes();
    /// Counts the time of the lanes' work, and completes a job of HelperCount after kJob bytes.
    void count_time(TimePoint begin);

    RmaStreamLink main_;
    const std::shared_ptr<RmaRegistry> registry_;
    std::array<std::unique_ptr<Lane>, kMostRmaLanes> lanes_;
    std::array<std::atomic<Lane*>, kMostRmaLanes> abortable_{};  // the same, for abort()
    std::size_t lane_count_ = 0;
    StickyStatus status_;
    bool moved_ = false;
    RmaPosts posts_;
    std::deque<Part> parts_;          // from the first one that is not over
    std::uint64_t parts_over_ = 0;    // before these
    std::uint64_t parts_failed_ = 0;  // of those that are over
    RmaHeldNotifications held_;
    std::vector<RmaCompletion> refused_;  // of parts that their lanes refused
    Lane* failed_ = nullptr;              // the first one that has failed
    const sys::CoreSet cores_;
    sys::HelperCount count_;
    std::uint64_t bytes_under_way_ = 0;
    std::uint64_t bytes_over_ = 0;  // of parts
    std::uint64_t job_begin_ = 0;   // bytes on lanes, of both ends' requests
    Duration job_taken_{};
    TimePoint last_progress_{};  // of busy lanes; none: they were idle
};

}  // namespace pccl::transport
