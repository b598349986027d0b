// SPDX-License-Identifier: Apache-2.0

// Executor for links: it runs one rank's program over buffers and links without blocking.
//
// progress() steps the lanes round robin. A lane moves bytes until its current step has to wait, or
// until it would poll for a message right after it received one: other lanes then run first,
// because a poll costs a system call. An executor that has run a program of the same size allocates
// nothing: it is meant to be reused.
//
// The program runs once for each window of the data (geometry.h). Lanes pass from window to window
// independently, unless the program uses scratch: then all lanes of this rank must finish a window
// before one of them starts the next but one, which uses the same scratch.
//
// A strand is an executor that shares the windows of a program with others: it runs each n-th
// window of n strands over links of its own. Threads can thus progress strands concurrently, if the
// table of links is thread-safe.
//
// If the cut requires it, each lane alternates between two windows in flight: a step of the later
// one starts once the same step of the earlier one is done. A rank that waits for a peer in one
// window thus continues in the other, and a link that only one step uses keeps their messages in
// order.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/collective/arithmetic/accumulator.h"
#include "csrc/collective/awaited.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/geometry.h"
#include "csrc/comm/links/link_program.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/comm/links/timeline.h"
#include "csrc/sys/cpu/tick_clock.h"

namespace pccl::comm {

class LinkExecutor {
   public:
    /// Maximum number of pieces of a message in one send.
    static constexpr std::size_t kMostPieces = 64;
    /// Maximum number of windows in flight if each has scratch.
    static constexpr std::size_t kScratches = 2;

    /// Keeps references to `links` and `timeline`, which must outlive it. A timeline that is on
    /// records the steps of programs that start from then on.
    LinkExecutor(LinkTable& links, Timeline& timeline, std::size_t strand = 0)
        : links_(links), timeline_(timeline), strand_(strand) {}

    /// Starts a program. `collective` and its blocks must stay valid until it is done. An average
    /// yields the sum. The blocks of a reduction hold partial results of `accumulator`.
    void start(std::shared_ptr<const LinkProgram> program, const Cut& cut,
               const abi::CollectiveHeader& header, const Collective& collective,
               const arithmetic::Accumulator& accumulator);

    /// Makes progress; sets `moved` if anything moved, and returns true when all is done. Errors
    /// leave the links in the middle of a stream.
    Result<bool> progress(bool& moved);

    /// Returns whether all data of this rank has been passed to its links.
    [[nodiscard]] bool is_flushed() const;
    /// Returns the peers that unfinished lanes wait for.
    [[nodiscard]] AwaitedRanks awaited() const;

   private:
    /// Position in a list of chunks; it only advances.
    struct SliceCursor {
        std::size_t slice = 0;
        int chunk = 0;           // index in the slice
        std::size_t number = 0;  // index in the list
        std::size_t before = 0;  // bytes of the list before it
    };
    /// State of one lane of the program, for every windows_at_once_-th window.
    struct LaneCursor {
        std::size_t round = 0;
        std::size_t step = 0;
        std::size_t total = 0;     // bytes of the current step
        std::size_t received = 0;  // bytes received of the current step
        std::size_t sent = 0;
        SliceCursor read{};  // position of a reduction in src
        SliceCursor written{};
        SliceCursor outgoing{};
        bool entered = false;
        bool done = false;
        TimePoint begun{};  // start of its step, if recorded
        TimePoint moved{};
        /// The first bytes of an element whose rest has not arrived.
        std::array<std::byte, 16> carry{};
        std::size_t carried = 0;
        std::vector<std::byte> unstored;  // partial result of a reduction that is forwarded
    };
    /// A port in this operation; its stream starts with a header.
    template <typename Link>
    struct OpenPort {
        Link* link = nullptr;
        std::size_t header_bytes = 0;  // header bytes sent or received
        abi::CollectiveHeader header{};
        [[nodiscard]] bool is_open() const { return header_bytes == sizeof header; }
    };

    Status progress_lane(LaneCursor& lane, std::size_t index, bool& moved);
    /// Returns true when the step is complete.
    Result<bool> progress_step(LaneCursor& lane, const LinkStep& step, bool& moved);
    /// Runs progress_step() and records the step. `ended`: when the previous step ended, if that
    /// was just now.
    Result<bool> progress_timed(LaneCursor& lane, const LinkStep& step, TimePoint& ended,
                                bool& moved);
    [[nodiscard]] TimedStep timed(const LaneCursor& lane, const LinkStep& step,
                                  TimePoint end) const;
    void begin_step(LaneCursor& lane, const LinkStep& step);
    void next_step(LaneCursor& lane, std::size_t index);
    /// Returns the window of the data that round `round` of this strand moves.
    [[nodiscard]] std::size_t window_of(std::size_t round) const {
        return round * cut_.strands + strand_;
    }
    /// Returns the port of this strand for a port of the program.
    [[nodiscard]] schedule::PeerPort port_of(const schedule::PeerPort& where) const {
        return {where.peer, where.channel + static_cast<ChannelId>(strand_) * kStrandChannels};
    }
    [[nodiscard]] const std::vector<LinkStep>& steps_of(std::size_t index) const {
        return program_->lanes[index / windows_at_once_];
    }
    [[nodiscard]] bool looks_for_more(const LaneCursor& lane, std::size_t index) const;
    [[nodiscard]] bool may_run(const LaneCursor& lane, std::size_t index) const;
    [[nodiscard]] bool is_past(const schedule::Dependency& dependency, std::size_t round) const;

    template <typename Move>
    void for_each_run(const LinkStep& step, std::size_t round, Move move);
    void copy(const LinkStep& step, std::size_t round);
    void reduce(const LinkStep& step, std::size_t round);
    Status receive(LaneCursor& lane, const LinkStep& step, bool& moved);
    Status receive_copying(LaneCursor& lane, const LinkStep& step, transport::RecvLink& link,
                           bool& moved);
    Status receive_reducing(LaneCursor& lane, const LinkStep& step, transport::RecvLink& link,
                            bool& moved);
    Result<std::size_t> fill_carry(LaneCursor& lane, transport::RecvLink& link);
    void combine_piece(LaneCursor& lane, const LinkStep& step, const std::byte* incoming,
                       std::size_t bytes);
    Status send(LaneCursor& lane, const LinkStep& step, bool& moved);
    /// Returns the header for or from `peer`, with the length of a block if only the two of them
    /// have it.
    [[nodiscard]] abi::CollectiveHeader header_for(std::span<const Block> blocks, Rank peer) const;
    Result<bool> open_send(OpenPort<transport::SendLink>& port, const schedule::PeerPort& where);
    Result<bool> open_receive(OpenPort<transport::RecvLink>& port, const schedule::PeerPort& where,
                              bool& moved);

    /// Returns the number of bytes that a step moves.
    [[nodiscard]] std::size_t length(const LinkStep& step, std::size_t round) const;
    /// Returns how many chunks of `slice` from `chunk` on are contiguous in memory.
    [[nodiscard]] int adjoining(const schedule::Slice& slice, int chunk) const;
    /// Returns those chunks at a position in one of the step's lists.
    [[nodiscard]] transport::MutableBytes chunks_at(const LinkStep& step,
                                                    const schedule::Slices& slices,
                                                    const SliceCursor& at, std::size_t round) const;
    [[nodiscard]] transport::MutableBytes scratch_at(const LinkStep& step, int chunk,
                                                     std::size_t number, std::size_t round) const;
    /// Advances the cursor over contiguous chunks of `bytes` bytes in total.
    void pass(const schedule::Slices& slices, std::size_t bytes, SliceCursor& cursor) const;
    /// Returns the contiguous memory at byte `offset` of one of the step's lists; none at its end.
    /// `offset` must not decrease between calls with one `cursor`.
    [[nodiscard]] transport::MutableBytes piece(const LinkStep& step,
                                                const schedule::Slices& slices, std::size_t round,
                                                std::size_t offset, SliceCursor& cursor) const;
    /// Returns the bytes that can be sent now, as up to kMostPieces pieces from the next byte on.
    [[nodiscard]] std::span<const transport::Bytes> outgoing(LaneCursor& lane,
                                                             const LinkStep& step);
    [[nodiscard]] transport::MutableBytes target(LaneCursor& lane, const LinkStep& step);
    Result<bool> flush_links();

    /// Distance between the channels of strands, above all channels of a program.
    static constexpr ChannelId kStrandChannels = 1 << 16;

    LinkTable& links_;
    Timeline& timeline_;
    const std::size_t strand_;
    std::shared_ptr<const LinkProgram> program_;
    const Collective* collective_ = nullptr;
    std::size_t element_bytes_ = 1;
    arithmetic::Combine combine_ = nullptr;  // null without a reduction
    Cut cut_;
    abi::CollectiveHeader header_{};
    std::vector<LaneCursor> lanes_;
    std::vector<OpenPort<transport::SendLink>> send_ports_;
    std::vector<OpenPort<transport::RecvLink>> receive_ports_;
    std::vector<std::byte> scratch_;
    std::array<transport::Bytes, kMostPieces> pieces_{};  // result of outgoing()
    std::size_t rounds_ = 0;                              // windows of this strand
    bool is_windowed_ = false;                            // there are several windows
    std::size_t windows_at_once_ = 1;
    std::size_t scratch_stride_ = 0;  // bytes
    /// Elements of the block whose chunks scratch memory holds: the only output block, or the
    /// longest block.
    std::size_t scratch_count_ = 0;
    std::size_t scratch_bytes_ = 0;  // bytes of one window
    std::size_t window_round_ = 0;   // first window that not all lanes have finished
    std::size_t lanes_through_ = 0;  // number of lanes that have finished it
    std::size_t lanes_done_ = 0;
    bool others_first_ = false;  // a lane has received; the other lanes poll next
    bool is_timed_ = false;      // whether this run is recorded
    TickClock clock_;            // refreshed for each recorded run
};

}  // namespace pccl::comm
