// Communicator: the collectives and messages of one group of ranks.
//
//     auto store = open_store("tcp://127.0.0.1:29500", rank, size, deadline).value();
//     auto comm = Communicator::create({.rank = rank, .size = size, .store = store}).value();
//     comm->all_reduce(...)
//
// Collectives of a group run in the order in which they were submitted, which must be the same on
// every rank; messages run beside them. Every member is safe from every thread. A synchronous call
// runs from start to end on its caller's thread.
//
// An operation that fails (other than by kInvalidArgument or kUnsupported, which are found before
// anything is sent) leaves the streams between the ranks in an unknown place: the communicator is
// then broken, and every later operation returns the first error.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/interruptible.h"
#include "csrc/bootstrap/links_counted_on.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/diagnosis/peer_health.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/links/timeline.h"
#include "csrc/comm/memory_context.h"
#include "csrc/comm/options.h"
#include "csrc/runtime/event.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::comm {

class Group;

class PCCL_API Communicator {
   public:
    /// Meets the other ranks; what `options.interrupted` says ends that, too, and is returned.
    static Result<std::shared_ptr<Communicator>> create(const CommunicatorOptions& options);
    ~Communicator();  // as shutdown()
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    [[nodiscard]] Rank rank() const;
    [[nodiscard]] int size() const;
    [[nodiscard]] const std::string& name() const;
    /// The part of the store where its ranks met that is this group's alone.
    [[nodiscard]] const std::shared_ptr<bootstrap::Store>& store() const { return options_.store; }
    [[nodiscard]] std::chrono::milliseconds timeout() const;
    void set_timeout(std::chrono::milliseconds timeout);
    /// That is switched between phases under it; null: none.
    [[nodiscard]] const std::shared_ptr<PhaseNetwork>& network() const { return options_.network; }
    /// Collectives submitted so far.
    [[nodiscard]] std::uint64_t sequence() const;

    /// Runs a collective on this thread. Errors: kInvalidArgument (blocks that do not fit the
    /// collective, root out of range), kUnsupported (type and operator), kTimeout, kPeerLost,
    /// kMismatch, kAborted.
    [[nodiscard]] Status run(const Collective& collective, OptionalTimeout timeout = {});
    /// What run() would refuse here before anything is sent: kInvalidArgument, kUnsupported, or why
    /// the group is over. Chooses the algorithm, which the next call of the same shape finds.
    [[nodiscard]] Status check_call(const Collective& collective) const;
    /// Starts a collective; the background thread carries it on while nobody waits.
    [[nodiscard]] Result<runtime::Event> submit(const Collective& collective,
                                                OptionalTimeout timeout = {});

    /// Point-to-point: messages with one tag between two ranks keep their order; tags may be
    /// received in any order. `bytes` must stay valid until done. A receive gets exactly
    /// bytes.size() bytes: a message of another length, or type, is kMismatch. To itself a rank may
    /// send as well (the receive must be submitted too).
    [[nodiscard]] Result<runtime::Event> send(Rank peer, std::int32_t tag,
                                              std::span<const std::byte> bytes,
                                              const MessageOptions& options = {});
    [[nodiscard]] Result<runtime::Event> receive(Rank peer_or_any, std::int32_t tag,
                                                 std::span<std::byte> bytes,
                                                 const MessageOptions& options = {});

    /// All ranks have called it when it returns.
    [[nodiscard]] Status barrier(OptionalTimeout timeout = {});
    /// Rank 0 names every rank that has not arrived in time (the first one, unless wait_all); the
    /// others are told. Leaves the communicator usable after kTimeout on rank 0 only if all others
    /// return too.
    [[nodiscard]] Status monitored_barrier(std::chrono::milliseconds timeout, bool wait_all);

    /// The group's workspaces and predefined buffers.
    [[nodiscard]] MemoryContext& memory() { return memory_; }
    /// Coordinated memory for an operation: this rank's part of workspace `name`, once all ranks
    /// have theirs, so that memory() maps any. A collective: all allocate it, or none does.
    /// kMismatch names ranks that give another name or size, or cannot allocate.
    [[nodiscard]] Result<std::span<std::byte>> get_operator_space(const std::string& name,
                                                                  std::size_t bytes,
                                                                  OptionalTimeout limit = {});

    /// The same for memory of another kind, which the caller allocates: all ranks come with one
    /// name and size, and `here` is ok on all. Then a store for this workspace alone; null for one
    /// rank.
    [[nodiscard]] Result<std::shared_ptr<bootstrap::Store>> agree_on_space(
        const std::string& name, std::size_t bytes, const Status& here, OptionalTimeout limit = {});

    /// The ways to make a collective whose largest buffer has `bytes`, with the time that the cost
    /// model predicts for each; one is chosen. kInvalidArgument names an algorithm that was asked
    /// for and does not fit.
    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind,
                                                          std::size_t bytes) const;

    /// Takes the capsule that a file has for so many ranks, which it gives, among those to choose
    /// from: before all others for `sizes` (capsule::parse_sizes(); empty: those that it states),
    /// and by name for any. Of gather, scatter and an all_to_all that is not even, whose lengths
    /// only pairs of ranks know, by name alone. A collective: all ranks load the same bytes, or
    /// none does. A rank whose file could not be read takes part with the reason. A capsule that
    /// switches phases of the network is run in its parts, by their names, and needs a group that
    /// switches one: kUnsupported. kMismatch names ranks that have other bytes or sizes;
    /// kInvalidArgument where the file is for other numbers of ranks, or there is one of its name.
    [[nodiscard]] Result<capsule::Capsule> load(const Result<capsule::CapsuleFile>& file,
                                                const std::optional<std::string>& sizes = {},
                                                OptionalTimeout limit = {});
    /// A collective, too. kInvalidArgument where no such capsule was loaded.
    [[nodiscard]] Status unload(const std::string& name, OptionalTimeout limit = {});
    /// What it chooses from: what it was made with, and what has been loaded since.
    [[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue() const;
    /// The sources of loaded capsules.
    [[nodiscard]] std::vector<schedule::SourcePtr> loaded() const;

    /// Records when the steps of this rank happen in the next collectives over links, as long as
    /// there is room for so many of them; 0: no longer. kInvalidArgument above
    /// Timeline::kMostSteps.
    [[nodiscard]] Status record_timeline(std::size_t most);
    /// What was recorded; ends it.
    [[nodiscard]] Result<TimedSteps> take_timeline();

    /// What predictions and the order of rings rest on; the same on all ranks.
    [[nodiscard]] bootstrap::LinksCountedOn links_counted_on() const;
    /// The hosts of the group, their topologies and what joins them: what topo::decode_job() takes,
    /// the same on all ranks. It was exchanged when a group on several hosts was made; on one host
    /// every rank describes that at the first call. Errors as those of topo::detect().
    [[nodiscard]] Result<std::string> describe_job() const;

    /// A new communicator of the ranks that are not `excluded`, in the same order, whether this one
    /// still works or not. All of them must call it with the same ranks, within a minute (or the
    /// timeout, if that is shorter), and all have confirmed that when it returns (agreement.h).
    /// Needs no store. After an error it may be called again, with the same ranks or more. Errors:
    /// kUnavailable where too few would be left, or others have gone on without this rank;
    /// kMismatch names a rank that leaves out others, kPeerLost one that is gone, kTimeout one that
    /// has not come.
    [[nodiscard]] Result<std::shared_ptr<Communicator>> shrink(std::span<const Rank> excluded,
                                                               const ShrinkOptions& wanted) const;
    /// The ranks that it takes to leave out: those that are gone, those that are silent for
    /// PCCL_PEER_TIMEOUT_MS, and those that others who shrink leave out. kUnavailable where others
    /// do without this rank.
    [[nodiscard]] Result<std::vector<Rank>> missing() const;
    /// Leaves out those who are missing, and again where more are found to be meanwhile; aborts
    /// what is in flight. kInvalidArgument where none is missing.
    [[nodiscard]] Result<std::shared_ptr<Communicator>> shrink(const ShrinkOptions& wanted) const;

    /// A new communicator of the ranks that give the same `color` (0 or more), in the order of
    /// their `key`, then of rank; null for ranks that give none. All ranks of this one must call
    /// it, as a collective; `limit` is for that, and each new group then meets through the store of
    /// this one, as long as its timeout allows. Errors as those of run() and create().
    [[nodiscard]] Result<std::shared_ptr<Communicator>> split(std::optional<int> color, int key,
                                                              OptionalTimeout limit = {});

    /// Makes every operation in flight and every later one fail with `reason`. Idempotent; from any
    /// thread.
    void abort(const Status& reason);
    /// Fails what is in flight with kAborted and closes the links. Idempotent. Waits for no peer,
    /// but for callbacks of the group's events that other threads run now, at most its timeout.
    /// kMismatch, which also goes to the log, where ranks have called different collectives in the
    /// end, as far as it shows by now: two roots of one broadcast.
    Status shutdown();
    /// Whether it was shut down or aborted, or has broken: every later operation fails.
    [[nodiscard]] bool is_over() const;
    /// ok, or the error that broke the communicator.
    [[nodiscard]] Status health() const;
    /// kUnavailable in a child of fork(): the communicator is its parent's. So fails all that asks
    /// anything of others; abort() and shutdown() do nothing there.
    [[nodiscard]] Status check_process() const;
    /// `cause`, of these ranks' GPUs, as users see it: with the group, the process of the rank that
    /// it blames, and what to do next.
    [[nodiscard]] Status explained(const Status& cause) const;
    /// How a rank fares, from itself: kPeerLost where it is gone, kTimeout where it is silent.
    [[nodiscard]] Result<RankStatus> ask(Rank rank, Deadline deadline) const;
    /// How all ranks fare, in their order; each may take as long as `answer_timeout` to answer.
    [[nodiscard]] Result<std::vector<PeerHealth>> survey(
        std::chrono::milliseconds answer_timeout) const;

   private:
    Communicator(const CommunicatorOptions& options, std::shared_ptr<Group> group);
    [[nodiscard]] Result<std::shared_ptr<Communicator>> shrink_to(
        const std::vector<Rank>& survivors, std::span<const Rank> excluded,
        const ShrinkOptions& wanted) const;
    static Result<std::shared_ptr<Communicator>> join(const CommunicatorOptions& options,
                                                      const Cancellation& cancellation);

    const CommunicatorOptions options_;  // its runtime apart
    std::shared_ptr<runtime::Runtime> runtime_;
    std::shared_ptr<Group> group_;
    MemoryContext memory_;
    std::atomic<int> agreed_spaces_{0};
};

/// What Communicator::monitored_barrier() does.
[[nodiscard]] Status monitored_barrier_on(Communicator& comm, std::chrono::milliseconds timeout,
                                          bool wait_all);

}  // namespace pccl::comm
