// A plan that runs, one operation after the other.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/capsule/mscclpp/events.h"
#include "csrc/capsule/mscclpp/execution.h"
#include "csrc/capsule/mscclpp/moments.h"

namespace pccl::capsule::mscclpp {

/// The run of a plan, within bounds of time and memory.
class Run {
   public:
    explicit Run(const Plan& plan);

    Result<Execution> run();

   private:
    Status run_block(std::size_t number);

    Block& self() { return blocks_[self_]; }
    const At& at() { return self().next; }
    Rank gpu() { return at().gpu; }
    const Operation& operation() { return plan_.operation(at()); }
    template <typename... Parts>
    Status refuse(const Parts&... parts) {
        return Status::unsupported(concat(plan_.place_of(at()), ": ", parts...));
    }
    /// Returns what this thread block knows now; makes it once for an operation.
    const MomentPtr& now();

    // Return what the next operation of this thread block waits for that has not happened yet.

    std::optional<Event> missing(const Operation& op);
    std::optional<Event> missing_block(const Operation& op);
    /// Signals, or releases of a semaphore, that no operation has taken yet.
    struct Come {
        std::deque<MomentPtr> moments{};
        std::size_t free = 0;  // of a semaphore at first
        [[nodiscard]] std::size_t count() const { return free + moments.size(); }
    };
    Come& come(const Event& event);

    /// Does an operation for which nothing is missing.
    Status perform(const Operation& op);

    /// Has the last thread block that comes wait for all others, and these for it.
    void pass_barrier();

    void take(const Event& event);

    /// Learns what another thread block did by a signal or a flag, which the schedule has not.
    void hear(const Moment& moment);
    /// Learns what a thread block of the same GPU did, and has the schedule wait for that.
    void learn(const Moment& moment);
    /// Learns what another thread block did by a message or a wait of the schedule.
    void carry(const Moment& moment);
    void wait_for(std::size_t block, std::size_t ops);
    /// Waits for all that is known of other thread blocks of the same GPU.
    void wait_for_known();

    void receive(const Written& written);

    /// Receives what other GPUs wrote to this one, as far as this thread block knows that they did;
    /// waits for another thread block that has received it.
    void receive_told();

    /// Reads memory of another GPU. The thread block that signalled last sends it; what another one
    /// wrote, without the knowledge of that, is sent by the one that wrote it.
    Status read(const Operation& op, std::size_t i);
    /// Finds the last signal of a GPU that this thread block knows of; null where there is none.
    MomentPtr last_signal_of(Rank rank);
    void receive_read(const Chunks& src, const Chunks& dst, const Writer& sender);

    Writer& writer_of(const Chunks& chunks, int i);
    void note_writer(const Chunks& dst);

    /// Receives packets that no thread block has read, a message for each run of one operation;
    /// waits for the thread block that made or received the others.
    void take_packets(const Chunks& src);
    void receive_packets(const Written& message);

    Status write(const Operation& op);
    Status write_packets(const Chunks& src, const Chunks& dst);

    void happen(const Event& event);
    void wake(const Event& event);

    Status check_all_ended();

    /// Finds what a GPU wrote to another that no signal told of.
    Status check_all_told() const;
    /// Finds a signal behind an operation of a thread block that no operation waited for.
    [[nodiscard]] const Moment* signal_of(Rank to, std::size_t block, std::size_t op) const;

    const Plan& plan_;
    Execution made_;
    std::size_t count_ = 0;           // thread blocks of all GPUs
    std::vector<std::size_t> first_;  // of each GPU
    std::vector<Block> blocks_;
    std::deque<std::size_t> ready_;
    std::map<Event, std::vector<std::size_t>> asleep_;

    std::size_t self_ = 0;  // the thread block that runs
    MomentPtr now_;
    std::vector<Packet*> taken_;                  // by the operation at hand
    std::vector<WrittenTo::Received*> received_;  // the same

    std::map<Event, Come> come_;
    std::map<Event, std::size_t> taken_of_;
    std::map<Event, std::shared_ptr<BarrierArrivals>> barriers_;  // that are not full
    std::map<Event, Packet> packets_;
    std::map<std::pair<std::size_t, Rank>, std::vector<MomentPtr>> signals_;  // taken, by block
    std::vector<std::map<std::size_t, WrittenTo>> written_;  // to a GPU, by thread block

    std::map<std::pair<Rank, schedule::Buffer>, std::vector<Writer>> writers_;

    std::size_t order_ = 0;  // of operations
    std::size_t kept_ = 0;
    std::size_t compared_ = 0;
    std::size_t waits_ = 0;
};

/// Runs a plan. kInvalidArgument with the operation that waits for ever; kUnsupported with that
/// which writes what nobody is told of, or reads what nobody said is there.
[[nodiscard]] Result<Execution> execute(const Plan& plan);

}  // namespace pccl::capsule::mscclpp
