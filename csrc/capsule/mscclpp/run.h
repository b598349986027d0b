// SPDX-License-Identifier: Apache-2.0

// Execution of a plan, one operation after the other.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/capsule/mscclpp/events.h"
#include "csrc/capsule/mscclpp/execution.h"
#include "csrc/capsule/mscclpp/moments.h"

namespace pccl::capsule::mscclpp {

/// Run of a plan, within bounded time and memory.
class PlanRun {
   public:
    explicit PlanRun(const MscclppPlan& plan);

    Result<RunResult> run();

   private:
    Status run_block(std::size_t number);

    ClockedBlock& self() { return blocks_[self_]; }
    const At& at() { return self().next; }
    Rank gpu() { return at().gpu; }
    const PlanOperation& operation() { return plan_.operation(at()); }
    template <typename... Parts>
    Status refuse(const Parts&... parts) {
        return Status::unsupported(concat(plan_.place_of(at()), ": ", parts...));
    }
    /// Returns the state of this thread block; creates it once per operation.
    const MomentPtr& now();

    // Return an event for which the next operation of this thread block still waits; empty if it
    // can run.

    std::optional<PlanEvent> missing(const PlanOperation& op);
    std::optional<PlanEvent> missing_block(const PlanOperation& op);
    /// Signals, or releases of a semaphore, that no operation has consumed yet.
    struct Come {
        std::deque<MomentPtr> moments{};
        std::size_t free = 0;  // initial value of a semaphore
        [[nodiscard]] std::size_t count() const { return free + moments.size(); }
    };
    Come& come(const PlanEvent& event);

    /// Performs an operation that is ready.
    Status perform(const PlanOperation& op);

    /// Makes the last thread block to arrive wait for all others, and the others wait for it.
    void pass_barrier();

    void take(const PlanEvent& event);

    /// Merges the clock of another thread block, received by a signal or a flag, without an edge in
    /// the schedule.
    void observe(const ClockedOperation& moment);
    /// Merges the clock of a thread block of the same GPU, and adds a wait for it to the schedule.
    void learn(const ClockedOperation& moment);
    /// Merges the schedule's clock of another thread block, received by a message or a wait.
    void carry(const ClockedOperation& moment);
    void wait_for(std::size_t block, std::size_t ops);
    /// Adds waits for all operations of this GPU that are ordered before by the plan's clock.
    void wait_for_known();

    void receive(const Written& written);

    /// Receives the writes of other GPUs to this one that are ordered before the current operation;
    /// waits for a thread block that has already received one.
    void receive_signalled();

    /// Reads memory of another GPU. The thread block of the last signal sends the data. If another
    /// thread block wrote it, unordered with that signal, the writer sends it.
    Status read(const PlanOperation& op, std::size_t i);
    /// Returns the last signal of a GPU that is ordered before the current operation; null if there
    /// is none.
    MomentPtr last_signal_of(Rank rank);
    void receive_read(const Chunks& src, const Chunks& dst, const LastWrite& sender);

    LastWrite& writer_of(const Chunks& chunks, int i);
    void note_writer(const Chunks& dst);

    /// Receives packets that no thread block has read yet, with a message for each run of one
    /// operation. Waits for the thread block that made or received the others.
    void take_packets(const Chunks& src);
    void receive_packets(const Written& message);

    Status write(const PlanOperation& op);
    Status write_packets(const Chunks& src, const Chunks& dst);

    void happen(const PlanEvent& event);
    void wake(const PlanEvent& event);

    Status check_all_ended();

    /// Checks that a signal follows every write to another GPU.
    Status check_all_signalled() const;
    /// Returns a signal after an operation of a thread block that no operation waited for.
    [[nodiscard]] const ClockedOperation* signal_of(Rank to, std::size_t block,
                                                    std::size_t op) const;

    const MscclppPlan& plan_;
    RunResult made_;
    std::size_t count_ = 0;           // thread blocks of all GPUs
    std::vector<std::size_t> first_;  // first thread block of each GPU
    std::vector<ClockedBlock> blocks_;
    std::deque<std::size_t> ready_;
    std::map<PlanEvent, std::vector<std::size_t>> asleep_;

    std::size_t self_ = 0;  // the thread block that runs
    MomentPtr now_;
    std::vector<Packet*> taken_;                  // by the current operation
    std::vector<WrittenTo::Received*> received_;  // by the current operation

    std::map<PlanEvent, Come> come_;
    std::map<PlanEvent, std::size_t> taken_of_;
    std::map<PlanEvent, std::shared_ptr<BarrierArrivals>> barriers_;  // that are not full
    std::map<PlanEvent, Packet> packets_;
    std::map<std::pair<std::size_t, Rank>, std::vector<MomentPtr>> signals_;  // consumed, by block
    std::vector<std::map<std::size_t, WrittenTo>> written_;  // to a GPU, by thread block

    std::map<std::pair<Rank, schedule::Buffer>, std::vector<LastWrite>> writers_;

    std::size_t order_ = 0;  // number of operations performed
    std::size_t kept_ = 0;
    std::size_t compared_ = 0;
    std::size_t waits_ = 0;
};

/// Runs a plan. kInvalidArgument: an operation waits for ever. kUnsupported: no signal follows a
/// write, or a read is not preceded by a signal. Messages contain the operation.
[[nodiscard]] Result<RunResult> execute(const MscclppPlan& plan);

}  // namespace pccl::capsule::mscclpp
