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

/// What execute() does, within bounds of time and memory.
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
    /// What this thread block knows, for others; made once for an operation.
    const MomentPtr& now();

    // What the next operation of this thread block waits for that has not happened yet.

    std::optional<Event> missing(const Operation& op);
    std::optional<Event> missing_block(const Operation& op);
    /// Signals, and releases of semaphores, that nobody has taken yet.
    struct Come {
        std::deque<MomentPtr> moments{};
        std::size_t free = 0;  // of a semaphore at first
        [[nodiscard]] std::size_t count() const { return free + moments.size(); }
    };
    Come& come(const Event& event);

    // What an operation does.

    Status perform(const Operation& op);

    /// The last that comes waits for all others, and they for it.
    void pass_barrier();

    void take(const Event& event);

    /// Knows what another thread block did, with no message or wait for it yet.
    void hear(const Moment& moment);
    /// Has the schedule wait for it: that of one of the same GPU.
    void learn(const Moment& moment);
    /// Knows by a message, or a wait.
    void carry(const Moment& moment);
    void wait_for(std::size_t block, std::size_t ops);
    /// Of its own GPU.
    void wait_for_known();

    void receive(const Written& written);

    /// What other GPUs wrote to this one, as far as it is known that they did: by the first thread
    /// block that gets to know, for which others wait.
    void receive_told();

    /// Reads memory of another GPU, as that has signalled: the thread block that did sends it, but
    /// for what another wrote of which that did not know, which sends it itself.
    Status read(const Operation& op, std::size_t i);
    /// The last signal of a GPU that this thread block knows of; null where there is none.
    MomentPtr last_signal_of(Rank rank);
    void receive_read(const Chunks& src, const Chunks& dst, const Writer& sender);

    Writer& writer_of(const Chunks& chunks, int i);
    void note_writer(const Chunks& dst);

    /// Runs of packets that one operation wrote, and nobody has read, are one message.
    void take_packets(const Chunks& src);
    void receive_packets(const Written& message);

    Status write(const Operation& op);
    Status write_packets(const Chunks& src, const Chunks& dst);

    void happen(const Event& event);
    void wake(const Event& event);

    Status check_all_ended();

    /// Nothing is left that a GPU wrote to another and told nobody.
    Status check_all_told() const;
    /// One that nobody waited for, behind an operation of a thread block.
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
    std::map<Event, std::shared_ptr<Meeting>> meetings_;  // that are not full
    std::map<Event, Packet> packets_;
    std::map<std::pair<std::size_t, Rank>, std::vector<MomentPtr>> signals_;  // taken, by block
    std::vector<std::map<std::size_t, WrittenTo>> written_;  // to a GPU, by thread block

    std::map<std::pair<Rank, schedule::Buffer>, std::vector<Writer>> writers_;

    std::size_t order_ = 0;  // of operations
    std::size_t kept_ = 0;
    std::size_t compared_ = 0;
    std::size_t waits_ = 0;
};

}  // namespace pccl::capsule::mscclpp
