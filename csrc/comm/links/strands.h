// SPDX-License-Identifier: Apache-2.0

// Strands of a program over links: executors that helper threads progress beside the caller's
// thread where cores are idle.
//
// All ranks cut a call into equally many strands, by what the roster shows of their cores. Each
// rank decides for itself how many of its threads work on them, by the times of earlier calls. A
// call of one window has one strand.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/comm/links/link_executor.h"
#include "csrc/sys/cpu/helper_count.h"
#include "csrc/sys/cpu/helper_pool.h"
#include "csrc/sys/cpu/shift.h"

namespace pccl::comm {

class Strands {
   public:
    /// Keeps a reference to `links`, which must outlive it.
    explicit Strands(LinkTable& links) : links_(links) {}

    /// Lets up to `helpers` threads, on `cores`, take part in later calls. None do while the
    /// timeline is on.
    void use_helpers(int helpers, const sys::CoreSet& cores);

    // As those of LinkExecutor, for all strands:

    [[nodiscard]] Timeline& timeline() { return timeline_; }
    void start(const std::shared_ptr<const LinkProgram>& program, const Cut& cut,
               const abi::CollectiveHeader& header, const Collective& collective,
               const arithmetic::Accumulator& accumulator);
    Result<bool> progress(bool& moved);
    [[nodiscard]] bool is_flushed() const;
    [[nodiscard]] AwaitedRanks awaited() const;

   private:
    /// Table for several threads of which one holds the group's lock.
    class SharedLinks final : public LinkTable {
       public:
        explicit SharedLinks(LinkTable& links) : links_(links) {}
        Result<transport::SendLink*> send_link(const schedule::PeerPort& to) override;
        transport::RecvLink* receive_link(const schedule::PeerPort& from) override;

       private:
        LinkTable& links_;
        std::mutex mutex_;
    };
    struct Strand {
        Strand(LinkTable& links, Timeline& timeline, std::size_t number)
            : executor(links, timeline, number) {}
        std::mutex mutex;  // of the thread that progresses it, if there are several
        LinkExecutor executor;
        bool is_done = false;
        Status failure{};
    };
    /// Result of one round over the strands of a thread.
    struct Moves {
        bool moved = false;
        bool is_any_left = false;  // of the strands that no other thread progresses
    };

    Status progress_strand(Strand& strand, bool& moved);
    Status progress_all(bool& moved);
    Status progress_with(int helpers, bool& moved);
    /// Progresses a thread's share of the strands, until no thread has found anything to do for a
    /// while.
    void work(sys::Shift& shift);
    /// Progresses the strands of the worker of that number.
    Moves progress_share(sys::Shift& shift, std::size_t number);
    [[nodiscard]] bool are_all_done() const;

    SharedLinks links_;
    Timeline timeline_;
    std::vector<std::unique_ptr<Strand>> strands_;
    std::size_t used_ = 0;  // strands of the present call
    bool is_timed_ = false;
    sys::CoreSet cores_;
    sys::HelperCount count_;
    std::size_t bytes_ = 0;  // of the present call
    TimePoint begun_{};
};

}  // namespace pccl::comm
