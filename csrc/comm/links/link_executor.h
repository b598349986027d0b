// The executor for links: runs one rank's program over buffers and links, as far as it goes without
// waiting.
//
// progress() steps the lanes round robin; each lane moves bytes until its current step has to wait,
// or would look for a message right after one: others may pass that one on first, while a look
// costs a system call. Nothing is allocated once it has run a program of the same size: it is meant
// to be started again and again.
//
// The program runs once for each window of the data (geometry.h). Lanes pass from one window to the
// next on their own, unless the program uses scratch: then all lanes of this rank finish a window
// before one of them begins the next but one, which uses the same scratch.
//
// Where the cut says so, each lane has two windows under way, in turns: a step of the later one
// begins once the same step of the earlier one is done. So a rank that waits for a peer in one of
// them goes on in the other, and a link that one step alone uses has their messages in order.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/abi/wire.h"
#include "csrc/base/tick_clock.h"
#include "csrc/collective/arithmetic/accumulator.h"
#include "csrc/collective/awaited.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/geometry.h"
#include "csrc/comm/links/link_program.h"
#include "csrc/comm/links/link_table.h"
#include "csrc/comm/links/timeline.h"

namespace pccl::comm {

class LinkExecutor {
   public:
    /// Of a message that are handed to a link at once.
    static constexpr std::size_t kMostPieces = 64;
    /// Windows that may be under way at a time where each has scratch.
    static constexpr std::size_t kScratches = 2;

    /// `links` outlive it.
    explicit LinkExecutor(LinkTable& links) : links_(links) {}

    /// When the steps happen of programs that start from now on; off at first.
    [[nodiscard]] Timeline& timeline() { return timeline_; }
    /// `collective` and its blocks stay where they are until it is done. Of averages it makes the
    /// sum. The blocks of what reduces hold partial results of `accumulator`.
    void start(std::shared_ptr<const LinkProgram> program, const Cut& cut,
               const abi::CollectiveHeader& header, const Collective& collective,
               const arithmetic::Accumulator& accumulator);

    /// Moves what can move; sets `moved` if anything did, and returns true when all is done. Errors
    /// leave the links in the middle of a stream.
    Result<bool> progress(bool& moved);

    /// Everything that this rank has to send is handed to its links.
    [[nodiscard]] bool is_flushed() const;
    /// The peers that unfinished lanes wait for.
    [[nodiscard]] AwaitedRanks awaited() const;

   private:
    /// How far a list has been gone through: to one of its chunks, never back.
    struct SliceCursor {
        std::size_t slice = 0;
        int chunk = 0;           // of the slice
        std::size_t number = 0;  // of the list
        std::size_t before = 0;  // bytes of the list in front of it
    };
    /// Of one lane of the program, for every windows_at_once_-th window.
    struct LaneCursor {
        std::size_t round = 0;
        std::size_t step = 0;
        std::size_t total = 0;     // bytes of the current step
        std::size_t received = 0;  // of these
        std::size_t sent = 0;
        SliceCursor read{};  // in src, where a reduction stands
        SliceCursor written{};
        SliceCursor outgoing{};
        bool entered = false;
        bool done = false;
        TimePoint begun{};  // its step, where that is recorded
        TimePoint moved{};
        std::array<std::byte, 16> carry{};  // the front of an element whose rest has not arrived
        std::size_t carried = 0;
        std::vector<std::byte> unstored;  // a reduction on its way through
    };
    /// A port in this operation: its stream opens with a header.
    template <typename Link>
    struct OpenPort {
        Link* link = nullptr;
        std::size_t header_bytes = 0;  // that have gone, or come
        abi::CollectiveHeader header{};
        [[nodiscard]] bool is_open() const { return header_bytes == sizeof header; }
    };

    Status progress_lane(LaneCursor& lane, std::size_t index, bool& moved);
    /// True when the step is complete.
    Result<bool> progress_step(LaneCursor& lane, const LinkStep& step, bool& moved);
    /// The same, and records it. `ended`: when the step before did, if that was right now.
    Result<bool> progress_timed(LaneCursor& lane, const LinkStep& step, TimePoint& ended,
                                bool& moved);
    [[nodiscard]] TimedStep timed(const LaneCursor& lane, const LinkStep& step,
                                  TimePoint end) const;
    void enter(LaneCursor& lane, const LinkStep& step);
    void next_step(LaneCursor& lane, std::size_t index);
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
    /// The header for or from `peer`; where only the two of them know a block's length, with that.
    [[nodiscard]] abi::CollectiveHeader header_for(std::span<const Block> blocks, Rank peer) const;
    Result<bool> open_send(OpenPort<transport::SendLink>& port, const schedule::Port& where);
    Result<bool> open_receive(OpenPort<transport::RecvLink>& port, const schedule::Port& where,
                              bool& moved);

    /// Bytes that a step moves.
    [[nodiscard]] std::size_t length(const LinkStep& step, std::size_t round) const;
    /// How many chunks adjoin in memory, from `chunk` of `slice` on.
    [[nodiscard]] int adjoining(const schedule::Slice& slice, int chunk) const;
    /// These, at a place in one of the step's lists.
    [[nodiscard]] transport::MutableBytes chunks_at(const LinkStep& step,
                                                    const schedule::Slices& slices,
                                                    const SliceCursor& at, std::size_t round) const;
    [[nodiscard]] transport::MutableBytes scratch_at(const LinkStep& step, int chunk,
                                                     std::size_t number, std::size_t round) const;
    /// Past chunks that adjoin, of so many bytes.
    void pass(const schedule::Slices& slices, std::size_t bytes, SliceCursor& cursor) const;
    /// The contiguous memory at byte `offset` of a list of the step's; none at its end. `cursor`
    /// has seen no larger offset.
    [[nodiscard]] transport::MutableBytes piece(const LinkStep& step,
                                                const schedule::Slices& slices, std::size_t round,
                                                std::size_t offset, SliceCursor& cursor) const;
    /// What can be sent now, up to kMostPieces pieces, from the byte on that comes next.
    [[nodiscard]] std::span<const transport::Bytes> outgoing(LaneCursor& lane,
                                                             const LinkStep& step);
    [[nodiscard]] transport::MutableBytes target(LaneCursor& lane, const LinkStep& step);
    Result<bool> flush_links();

    LinkTable& links_;
    std::shared_ptr<const LinkProgram> program_;
    const Collective* collective_ = nullptr;
    std::size_t element_bytes_ = 1;
    arithmetic::Combine combine_ = nullptr;  // null where nothing is reduced
    Cut cut_;
    abi::CollectiveHeader header_{};
    std::vector<LaneCursor> lanes_;
    std::vector<OpenPort<transport::SendLink>> send_ports_;
    std::vector<OpenPort<transport::RecvLink>> receive_ports_;
    std::vector<std::byte> scratch_;
    std::array<transport::Bytes, kMostPieces> pieces_{};  // what outgoing() gives
    std::size_t rounds_ = 0;
    std::size_t windows_at_once_ = 1;
    std::size_t scratch_stride_ = 0;  // bytes
    std::size_t scratch_count_ = 0;   // elements of a block that no step names: the own one
    std::size_t scratch_bytes_ = 0;   // of one window
    std::size_t window_round_ = 0;    // that not all lanes are through
    std::size_t lanes_through_ = 0;   // lanes of the program that finished it
    std::size_t lanes_done_ = 0;
    bool others_first_ = false;  // a lane has received, and leaves the next look to the others
    Timeline timeline_;
    bool is_timed_ = false;  // what has started
    TickClock clock_;        // fresh where it is
};

}  // namespace pccl::comm
