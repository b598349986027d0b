// SPDX-License-Identifier: Apache-2.0

// Communicator: the collectives and messages of one group of ranks, on host memory.
//
//     PCCL_ASSIGN_OR_RETURN(const auto store, open_store("tcp://127.0.0.1:29500", rank, size,
//                                                        Deadline::after(30s)));
//     PCCL_ASSIGN_OR_RETURN(const auto comm,
//                           Communicator::create({.rank = rank, .size = size, .store = store}));
//     const Block block{data, count};
//     PCCL_TRY(comm->run({.inputs = {&block, 1}, .outputs = {&block, 1}}));
//
// Collectives of a group run in the order of their submission, which must be equal on all ranks;
// messages run concurrently with them. A synchronous call runs from start to end on its caller's
// thread.
//
// An operation that fails leaves the streams between the ranks in an undefined state: the
// communicator is then broken, and every later operation returns the first error. Exceptions are
// kInvalidArgument and kUnsupported, which are returned before anything is sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/capsule.h>
#include <pccl/collective.h>
#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/store.h>
#include <pccl/types.h>

namespace pccl {

namespace comm {
class CommunicatorImpl;
}

/// Options of a communicator. `size` and `algorithm` are equal on all ranks.
struct CommunicatorOptions {
    Rank rank = 0;  // of this process, below `size`
    int size = 1;   // number of ranks
    /// Store for this group alone at any one time; the group may have met there before. Null when
    /// size is 1.
    std::shared_ptr<Store> store{};
    std::string name = "world";                           // used in messages
    std::chrono::milliseconds timeout = kDefaultTimeout;  // default of operations
    /// Transports, such as "shm,tcp". Empty: those of PCCL_TRANSPORTS.
    std::string transports{};
    /// Algorithms, as in PCCL_ALGORITHM, which it overrides: "all_reduce=ring". Empty: the
    /// library's choice.
    std::string algorithm{};
    /// Ends the wait for other ranks with its error.
    InterruptCheck interrupted{};
};

/// Algorithm for a collective, with the prediction of the cost model.
struct PredictedAlgorithm {
    std::string algorithm{};  // name, as in PCCL_ALGORITHM
    std::string over{};       // "shm" or "links"
    double seconds = 0;       // predicted time
    /// Number of messages over links that may be delayed: those of the rank that sends most. With a
    /// root over sockets, it is the longest chain of messages if that is more, or if ranks share
    /// cores.
    long long messages = 0;
    std::string busiest{};   // the link that most ranks share: "eth0 of node7, 1.25 GB/s"; or empty
    bool is_chosen = false;  // the next call of this size uses it
    std::string chosen_by{};  // "request", "capsule", "tuning" or "prediction", if it is chosen
};

/// Health of a rank of a group, from the view of another rank.
struct PeerHealth {
    /// Liveness of a rank.
    enum class State {
        kHere,    // it answered
        kSilent,  // it did not answer: it is stopped, or disconnected
        kGone,    // its process has ended, or has left the group
    };

    Rank rank = 0;                // the rank
    State state = State::kHere;   // whether it answered
    std::string detail{};         // why the group is over there, or why it did not answer
    std::uint64_t sequence = 0;   // collectives that it has submitted, if it answered
    std::string operation{};      // its collective in progress, if it answered; empty: none
    std::vector<Rank> awaited{};  // the ranks that this collective waits for
    /// Time since its last sign of life: an answer, or a successful operation that required it.
    /// Empty: there was none.
    std::optional<Duration> last_sign{};
};

/// Part of a workspace that belongs to some rank, mapped into this process.
struct HeldMemory {
    std::span<std::byte> memory{};         // zero-initialised and page-aligned
    std::shared_ptr<const void> holder{};  // keeps the memory mapped while any copy exists
};

/// Group of ranks. Thread-safe. In a child of fork() every call that involves peers returns
/// kUnavailable.
class PCCL_API Communicator {
   public:
    /// Meets the other ranks and returns their communicator. Errors: kInvalidArgument for bad
    /// options, kTimeout and kPeerLost, which name a missing rank, kMismatch for ranks with other
    /// options, those of the store, and that of `options.interrupted`.
    static Result<std::shared_ptr<Communicator>> create(const CommunicatorOptions& options);
    /// Calls shutdown(), unless an Operator still uses the group.
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    /// Returns the rank of this process.
    [[nodiscard]] Rank rank() const;
    /// Returns the number of ranks.
    [[nodiscard]] int size() const;
    /// Returns the name in messages.
    [[nodiscard]] const std::string& name() const;
    /// Returns the part of the store that belongs to this group alone; null for one rank.
    [[nodiscard]] const std::shared_ptr<Store>& store() const;
    /// Returns the timeout of operations without one of their own.
    [[nodiscard]] std::chrono::milliseconds timeout() const;
    /// Sets the timeout of later operations.
    void set_timeout(std::chrono::milliseconds timeout);
    /// Returns the number of collectives that were submitted so far.
    [[nodiscard]] std::uint64_t sequence() const;

    /// Runs a collective on the calling thread. Errors: kInvalidArgument (blocks that do not fit
    /// the collective, root out of range), kUnsupported (type and operator), kTimeout, kPeerLost,
    /// kMismatch, kAborted.
    [[nodiscard]] Status run(const Collective& collective, OptionalTimeout timeout = {});
    /// Returns the error that run() would return on this rank before it sends anything:
    /// kInvalidArgument, kUnsupported, or the reason why the group is over. Chooses the algorithm;
    /// the next call of the same shape reuses the choice.
    [[nodiscard]] Status check_call(const Collective& collective) const;
    /// Starts a collective; a background thread makes progress on it when no thread waits.
    [[nodiscard]] Result<Event> submit(const Collective& collective, OptionalTimeout timeout = {});

    /// Sends a message to one rank. Messages with one tag between two ranks keep their order; tags
    /// may be received in any order. `bytes` must stay valid until the event is done. A rank may
    /// send to itself, too (the receive must be submitted as well). `tag` is below 2^30.
    [[nodiscard]] Result<Event> send(Rank peer, std::int32_t tag, std::span<const std::byte> bytes,
                                     const MessageOptions& options = {});
    /// Receives a message from one rank, or from kAnySource. It takes exactly bytes.size() bytes: a
    /// message of another length or type is kMismatch.
    [[nodiscard]] Result<Event> receive(Rank peer_or_any, std::int32_t tag,
                                        std::span<std::byte> bytes,
                                        const MessageOptions& options = {});

    /// Returns when all ranks have called it.
    [[nodiscard]] Status barrier(OptionalTimeout timeout = {});
    /// Waits on rank 0 for every rank. Rank 0 names all ranks that have not arrived in time (only
    /// the first one, unless wait_all) and sends its result to the others. After kTimeout on rank 0
    /// the communicator stays usable only if all other ranks return, too.
    [[nodiscard]] Status monitored_barrier(std::chrono::milliseconds timeout, bool wait_all);

    // Workspaces: memory that the ranks allocate together, by name (1 to 128 bytes; "pccl/..." is
    // reserved). They are zero-initialised and page-aligned; untouched pages use no memory. Users
    // must synchronise access to them.

    /// Allocates workspace `name` on all ranks and returns this rank's part, which is valid until
    /// release_workspace(). Every part can be mapped once it returns. This is a collective: either
    /// all ranks allocate, or none does. kMismatch names ranks that pass another name or size, or
    /// that cannot allocate.
    [[nodiscard]] Result<std::span<std::byte>> allocate_on_all_ranks(const std::string& name,
                                                                     std::size_t bytes,
                                                                     OptionalTimeout limit = {});
    /// Allocates this rank's part and publishes it in the store, without waiting. The n-th
    /// allocation of a name on this rank matches the n-th on every other rank. Errors:
    /// kInvalidArgument (no bytes, or the name is in use), kResourceExhausted, those of the store.
    [[nodiscard]] Result<std::span<std::byte>> allocate_workspace(const std::string& name,
                                                                  std::size_t bytes);
    /// Waits until all ranks have published the workspace, which this rank must have allocated.
    /// Errors: kTimeout names the missing ranks; kMismatch a rank that chose another size.
    [[nodiscard]] Status wait_workspace(const std::string& name, Deadline deadline);
    /// Maps a rank's part into this process until release_workspace(). kUnavailable before
    /// wait_workspace(); kUnsupported if it is on another host or cannot be mapped from here.
    [[nodiscard]] Result<std::span<std::byte>> map_remote(const std::string& name, Rank rank);
    /// Maps a part until the caller drops the holder, even after release_workspace() or the peer's
    /// exit. Errors are those of map_remote().
    [[nodiscard]] Result<HeldMemory> hold_remote(const std::string& name, Rank rank);
    /// Returns the workspaces of this rank, with the bytes of one part.
    [[nodiscard]] std::map<std::string, std::size_t> workspaces() const;
    /// Releases this rank's part and its views of peers' parts. Peers' views stay valid. The name
    /// may then be allocated again. kInvalidArgument: this rank has no such workspace.
    [[nodiscard]] Status release_workspace(const std::string& name);

    /// Returns the possible algorithms for a collective whose largest buffer has `bytes` bytes,
    /// each with the time that the cost model predicts; one of them is marked as chosen.
    /// kInvalidArgument names a requested algorithm that does not fit.
    [[nodiscard]] Result<std::vector<PredictedAlgorithm>> explain(CollectiveKind kind,
                                                                  std::size_t bytes) const;

    /// Loads the program of a capsule file for this number of ranks, and returns it. It is then
    /// preferred to all other algorithms for `sizes` ("64KB..1MB", "by name"; empty: the sizes that
    /// the capsule states), and available by name for any size. For gather, scatter and an uneven
    /// all_to_all it is available by name alone, because only pairs of ranks have their lengths.
    ///
    /// This is a collective: either all ranks load the same bytes, or none does. A rank that cannot
    /// read its file takes part, and returns the reason. kUnsupported: the capsule switches phases
    /// of the network. kMismatch names ranks that have other bytes or sizes, or no file.
    /// kInvalidArgument means that the file is faulty or for other numbers of ranks, or that the
    /// name is in use.
    [[nodiscard]] Result<Capsule> load(const std::string& path,
                                       const std::optional<std::string>& sizes = {},
                                       OptionalTimeout limit = {});
    /// Loads a capsule, as load() does from a file. All ranks call the same one of these functions,
    /// or another of them with the same bytes.
    [[nodiscard]] Result<Capsule> load(const Capsule& capsule,
                                       const std::optional<std::string>& sizes = {},
                                       OptionalTimeout limit = {});
    /// Loads the bytes of a capsule file, of any origin, as load() does from a file.
    [[nodiscard]] Result<Capsule> load_bytes(std::string bytes,
                                             const std::optional<std::string>& sizes = {},
                                             OptionalTimeout limit = {});
    /// Unloads a capsule. This is a collective, too. kInvalidArgument means that no such capsule is
    /// loaded.
    [[nodiscard]] Status unload(const std::string& name, OptionalTimeout limit = {});
    /// Returns the names of loaded capsules.
    [[nodiscard]] std::vector<std::string> loaded() const;

    /// Creates a communicator of the ranks that are not `excluded`, in the same order, whether this
    /// one still works or not. All remaining ranks must call it with the same ranks within a minute
    /// (or the timeout, if that is shorter); all have confirmed when it returns. It needs no store.
    /// After an error it may be called again, with the same ranks or more. Errors: kUnavailable if
    /// too few ranks would be left, or if others have continued without this rank; kMismatch names
    /// a rank that excludes other ranks, kPeerLost one that is gone, kTimeout one that has not
    /// called.
    [[nodiscard]] Result<std::shared_ptr<Communicator>> shrink(std::span<const Rank> excluded,
                                                               const ShrinkOptions& wanted) const;
    /// Excludes the missing() ranks, and retries when more are found missing in the meantime.
    /// Aborts operations in flight. kInvalidArgument if no rank is missing.
    [[nodiscard]] Result<std::shared_ptr<Communicator>> shrink(
        const ShrinkOptions& wanted = {}) const;
    /// Returns the ranks to exclude: those that are gone, those that have been silent for
    /// PCCL_PEER_TIMEOUT_MS, and those that other shrinking ranks exclude. kUnavailable if others
    /// exclude this rank.
    [[nodiscard]] Result<std::vector<Rank>> missing() const;
    /// Creates one communicator for each `color` (0 or more), with the ranks that pass it in the
    /// order of `key`, then rank; null for ranks that pass none. All ranks must call it, as a
    /// collective. `limit` applies to that collective; each new group then meets through this one's
    /// store within its own timeout. Errors are those of run() and create().
    [[nodiscard]] Result<std::shared_ptr<Communicator>> split(std::optional<int> color, int key,
                                                              OptionalTimeout limit = {});

    /// Makes every operation in flight and every later one fail with `reason`. Idempotent.
    void abort(const Status& reason);
    /// Fails operations in flight with kAborted and closes the links. Idempotent. Waits for no
    /// peer, but waits up to its timeout for callbacks of the group's events that other threads
    /// run. Returns and logs kMismatch when the last collectives of the ranks are found to differ,
    /// such as two roots of one broadcast.
    Status shutdown();
    /// Returns whether it was shut down or aborted, or is broken: every later operation fails.
    [[nodiscard]] bool is_over() const;
    /// Returns ok, or the error that broke the communicator.
    [[nodiscard]] Status health() const;
    /// Returns kUnavailable in a child of fork(): the communicator belongs to the parent. All calls
    /// that involve peers fail alike; abort() and shutdown() do nothing there.
    [[nodiscard]] Status check_process() const;
    /// Returns the health of all ranks, indexed by rank. Every rank has `answer_timeout` to answer.
    [[nodiscard]] Result<std::vector<PeerHealth>> survey(
        std::chrono::milliseconds answer_timeout) const;

   private:
    friend class Operator;
    explicit Communicator(std::shared_ptr<comm::CommunicatorImpl> group);

    const std::shared_ptr<comm::CommunicatorImpl> group_;
};

}  // namespace pccl
