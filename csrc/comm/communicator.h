// SPDX-License-Identifier: Apache-2.0

// The collectives and messages of one group of ranks, on host memory.
//
// Collectives of a group run in the order of their submission, which must be equal on all ranks;
// messages run concurrently with them. All members are thread-safe. A synchronous call runs from
// start to end on its caller's thread.
//
// An operation that fails leaves the streams between the ranks in an undefined state: the
// communicator is then broken, and every later operation returns the first error. Exceptions are
// kInvalidArgument and kUnsupported, which are returned before anything is sent.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/collective.h>
#include <pccl/store.h>
#include "csrc/base/threads/interruptible.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/collective/collective.h"
#include "csrc/collective/prediction.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/comm/group/options.h"
#include "csrc/comm/links/timeline.h"
#include "csrc/comm/memory_context.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::comm {

class Group;

/// Implementation of pccl::Communicator.
class PCCL_API CommunicatorImpl {
   public:
    /// Meets the other ranks and returns their communicator. An error of `options.interrupted` ends
    /// the wait and is returned.
    static Result<std::shared_ptr<CommunicatorImpl>> create(const CommunicatorImplOptions& options);
    ~CommunicatorImpl();  // calls shutdown()
    CommunicatorImpl(const CommunicatorImpl&) = delete;
    CommunicatorImpl& operator=(const CommunicatorImpl&) = delete;

    [[nodiscard]] Rank rank() const;
    [[nodiscard]] int size() const;
    [[nodiscard]] const std::string& name() const;
    /// Returns the part of the store that belongs to this group alone.
    [[nodiscard]] const std::shared_ptr<Store>& store() const { return options_.store; }
    [[nodiscard]] std::chrono::milliseconds timeout() const;
    void set_timeout(std::chrono::milliseconds timeout);
    /// Returns the network that switches phases under this group; null: none.
    [[nodiscard]] const std::shared_ptr<PhaseNetwork>& network() const { return options_.network; }
    /// Returns the number of collectives that were submitted so far.
    [[nodiscard]] std::uint64_t sequence() const;

    /// See <pccl/communicator.h>.
    [[nodiscard]] Status run(const Collective& collective, OptionalTimeout timeout = {});
    /// See <pccl/communicator.h>.
    [[nodiscard]] Status check_call(const Collective& collective) const;
    /// Starts a collective; the background thread makes progress on it when no thread waits.
    [[nodiscard]] Result<Event> submit(const Collective& collective, OptionalTimeout timeout = {});

    /// Sends a message to one rank. Messages with one tag between two ranks keep their order; tags
    /// may be received in any order. `bytes` must stay valid until the event is done. A receive
    /// takes exactly bytes.size() bytes: a message of another length or type is kMismatch. A rank
    /// may send to itself, too (the receive must be submitted as well).
    [[nodiscard]] Result<Event> send(Rank peer, std::int32_t tag, std::span<const std::byte> bytes,
                                     const MessageOptions& options = {});
    [[nodiscard]] Result<Event> receive(Rank peer_or_any, std::int32_t tag,
                                        std::span<std::byte> bytes,
                                        const MessageOptions& options = {});

    /// Returns when all ranks have called it.
    [[nodiscard]] Status barrier(OptionalTimeout timeout = {});
    /// See <pccl/communicator.h>.
    [[nodiscard]] Status monitored_barrier(std::chrono::milliseconds timeout, bool wait_all);

    /// Returns the group's workspaces.
    [[nodiscard]] MemoryContext& memory() { return memory_; }
    /// Allocates workspace `name` on all ranks and returns this rank's part. memory() can map every
    /// part once it returns. This is a collective: either all ranks allocate, or none does.
    /// kMismatch names ranks that pass another name or size, or that cannot allocate.
    [[nodiscard]] Result<std::span<std::byte>> allocate_on_all_ranks(const std::string& name,
                                                                     std::size_t bytes,
                                                                     OptionalTimeout limit = {});

    /// Checks the same for memory of another kind, which the caller allocates: all ranks pass one
    /// name and size, and `here` is ok on all. Returns a store for this workspace alone; null for
    /// one rank.
    [[nodiscard]] Result<std::shared_ptr<Store>> agree_on_allocation(const std::string& name,
                                                                     std::size_t bytes,
                                                                     const Status& here,
                                                                     OptionalTimeout limit = {});

    /// See <pccl/communicator.h>.
    [[nodiscard]] Result<std::vector<Prediction>> explain(CollectiveKind kind,
                                                          std::size_t bytes) const;

    /// Loads the capsule that a file contains for this number of ranks, and returns it. The capsule
    /// is then preferred to all other algorithms for `sizes` (capsule::parse_sizes(); empty: the
    /// sizes that the capsule states), and available by name for any size. For gather, scatter and
    /// an uneven all_to_all it is available by name alone, because only pairs of ranks have their
    /// lengths.
    ///
    /// This is a collective: either all ranks load the same bytes, or none does. A rank that could
    /// not read its file takes part and passes the reason. A capsule that switches phases of the
    /// network runs as several parts with their own names, and needs a group that switches a
    /// network: kUnsupported otherwise. kMismatch names ranks that have other bytes or sizes;
    /// kInvalidArgument means that the file is for other numbers of ranks, or that the name is in
    /// use.
    [[nodiscard]] Result<capsule::VerifiedCapsule> load(
        const Result<capsule::CapsuleFile>& file, const std::optional<std::string>& sizes = {},
        OptionalTimeout limit = {});
    /// See <pccl/communicator.h>.
    [[nodiscard]] Status unload(const std::string& name, OptionalTimeout limit = {});
    /// Returns the schedules to choose from: those of the options, and those loaded since.
    [[nodiscard]] std::shared_ptr<const schedule::Catalogue> catalogue() const;
    /// Returns the sources of loaded capsules.
    [[nodiscard]] std::vector<schedule::SourcePtr> loaded() const;

    /// Records the times of this rank's steps in the next collectives over links, up to `most`
    /// steps; 0 stops recording. kInvalidArgument above Timeline::kMostSteps.
    [[nodiscard]] Status record_timeline(std::size_t most);
    /// Returns the recorded steps and stops recording.
    [[nodiscard]] Result<TimedSteps> take_timeline();

    /// Returns the link properties that predictions and the order of rings are based on; equal on
    /// all ranks.
    [[nodiscard]] bootstrap::LinksCountedOn links_counted_on() const;
    /// Returns the hosts of the group, their topologies and their interconnect in the format of
    /// topo::decode_job(); equal on all ranks. Groups on several hosts exchange it when they are
    /// created; on one host every rank detects it at the first call. Errors are those of
    /// topo::detect().
    [[nodiscard]] Result<std::string> describe_job() const;

    /// Creates a communicator of the ranks that are not `excluded`, in the same order, whether this
    /// one still works or not. All remaining ranks must call it with the same ranks within a minute
    /// (or the timeout, if that is shorter); all have confirmed when it returns (agreement.h). It
    /// needs no store. After an error it may be called again, with the same ranks or more. Errors:
    /// kUnavailable if too few ranks would be left, or if others have continued without this rank;
    /// kMismatch names a rank that excludes other ranks, kPeerLost one that is gone, kTimeout one
    /// that has not called.
    [[nodiscard]] Result<std::shared_ptr<CommunicatorImpl>> shrink(
        std::span<const Rank> excluded, const ShrinkOptions& wanted) const;
    /// Returns the error with which shrink() refuses these arguments by themselves.
    [[nodiscard]] Status check_shrink(std::span<const Rank> excluded,
                                      const ShrinkOptions& wanted) const;
    /// See <pccl/communicator.h>.
    [[nodiscard]] Result<std::vector<Rank>> missing() const;
    /// Excludes the missing ranks, and retries when more are found missing in the meantime. Aborts
    /// operations in flight. kInvalidArgument if no rank is missing.
    [[nodiscard]] Result<std::shared_ptr<CommunicatorImpl>> shrink(
        const ShrinkOptions& wanted) const;

    /// See <pccl/communicator.h>.
    [[nodiscard]] Result<std::shared_ptr<CommunicatorImpl>> split(std::optional<int> color, int key,
                                                                  OptionalTimeout limit = {});

    /// Makes every operation in flight and every later one fail with `reason`. Idempotent and
    /// thread-safe.
    void abort(const Status& reason);
    /// See <pccl/communicator.h>.
    Status shutdown();
    /// Returns whether it was shut down or aborted, or is broken: every later operation fails.
    [[nodiscard]] bool is_over() const;
    /// Returns ok, or the error that broke the communicator.
    [[nodiscard]] Status health() const;
    /// See <pccl/communicator.h>.
    [[nodiscard]] Status check_process() const;
    /// Adds context to `cause`, an error of these ranks' GPUs: the group, the process of the blamed
    /// rank, and advice for the user.
    [[nodiscard]] Status explained(const Status& cause) const;
    /// Requests the status of a rank from that rank: kPeerLost if it is gone, kTimeout if it is
    /// silent.
    [[nodiscard]] Result<RankStatus> query(Rank rank, Deadline deadline) const;
    /// Returns the health of all ranks, indexed by rank. Every rank has `answer_timeout` to answer.
    [[nodiscard]] Result<std::vector<SurveyedPeer>> survey(
        std::chrono::milliseconds answer_timeout) const;

   private:
    CommunicatorImpl(const CommunicatorImplOptions& options, std::shared_ptr<Group> group);
    [[nodiscard]] Result<std::shared_ptr<CommunicatorImpl>> shrink_to(
        const std::vector<Rank>& survivors, std::span<const Rank> excluded,
        const ShrinkOptions& wanted) const;
    static Result<std::shared_ptr<CommunicatorImpl>> join(const CommunicatorImplOptions& options,
                                                          const Cancellation& cancellation);

    const CommunicatorImplOptions options_;  // without its runtime
    std::shared_ptr<runtime::Runtime> runtime_;
    std::shared_ptr<Group> group_;
    MemoryContext memory_;
    std::atomic<int> agreed_spaces_{0};
};

}  // namespace pccl::comm
