// Moving bytes between processes that are not ranks of one collective: they come and go, and reach
// each other's registered memory with no call of the far side.
//
//     auto a = Session::create({.name = "prefill-0"});        // listens from here on
//     auto memory = a->register_memory({data, bytes});
//     hand_over(a->connection_info(), memory->serialised_descriptor());
//
//     auto b = Session::create({.name = "decode-3"});         // in another process
//     b->load_remote_conn_info(info);
//     auto theirs = b->import_memory("prefill-0", descriptor);
//     auto work = b->read({mine, {0, n}}, {theirs, {0, n}});  // connects at its first use
//     work->wait(Deadline::after(2s));
//
// Nobody has a role, and no call waits for the far side's user: the progress threads of both
// processes do what is to do. Everything here is safe from every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/fork_bound.h"
#include "csrc/base/status.h"
#include "csrc/p2p/memory.h"
#include "csrc/p2p/notification.h"
#include "csrc/p2p/plan.h"
#include "csrc/p2p/session_options.h"
#include "csrc/p2p/stream_event.h"
#include "csrc/p2p/transfer.h"
#include "csrc/p2p/work.h"

namespace pccl::runtime {
class Runtime;
}

namespace pccl::p2p {

class ConnectRequest;
class Inquiry;
class SessionCore;

class PCCL_API Session {
   public:
    /// ok, or why a wait is to end.
    using Interrupted = std::function<Status()>;

    /// kUnavailable in a child of fork(), and where no transport is left of those asked for.
    static Result<std::unique_ptr<Session>> create(const SessionOptions& options);
    /// As close().
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] const SessionId& id() const;
    /// kUnavailable in a child of fork(), as all that returns a Status there. What returns none
    /// finds nothing, and does nothing: close() and ~Session(), too.
    [[nodiscard]] Status check_usable() const { return core_.check(); }

    // Peers:

    /// For peers, in any way that keeps it from strangers: who has it can connect.
    [[nodiscard]] std::string connection_info() const;
    /// Whom the info is of. What was known of an earlier incarnation of that session is forgotten,
    /// and a connection to it is closed. kInvalidArgument where it cannot be read.
    Result<SessionId> load_remote_conn_info(std::string_view info);
    /// Waits until there is a connection; transfers make it by themselves. One that is here already
    /// is good only if the peer answers on it: else it is lost, and another one is made. Behind
    /// what the peer's program has yet to receive, as questions are (fetch()). kInvalidArgument for
    /// a name that was not loaded and has not called here, kPeerLost where nobody is there any
    /// more, kTimeout after `deadline`, or connect_timeout; kResourceExhausted where 256 questions
    /// wait for its answer.
    Status connect(const std::string& peer, Deadline deadline);
    /// connect() in two halves, for who waits in slices.
    [[nodiscard]] std::shared_ptr<ConnectRequest> call(const std::string& peer) const;
    /// How it ended; nothing where `deadline` has passed before (ConnectRequest::timeout_error()).
    std::optional<Status> await_connection(ConnectRequest& call, Deadline deadline);
    /// Waits until a peer has connected, and says who. Each is told once, in the order in which
    /// they came, and again when it has connected anew; one that has gone by then is passed over.
    /// kTimeout, kAborted where this session closes.
    Result<SessionId> accept(Deadline deadline);
    /// The same of one peer, which need not be known yet: at once where there is a connection to
    /// it, whoever made that. With no name: any peer.
    Result<SessionId> accept(const std::string& peer, Deadline deadline);
    /// Ends what is under way with this peer, and tells it who has gone. It may connect again.
    /// Waits for notifications that have not left, for 20 s at most. `interrupted` is asked
    /// meanwhile: unless ok, it is returned, and they are dropped.
    Status disconnect(const std::string& peer, const Interrupted& interrupted = {});
    /// Those that there is a connection to.
    [[nodiscard]] std::vector<SessionId> peers() const;

    // Memory:

    /// Lets peers reach it until deregister_memory(), or close(). `owner` keeps it, for as long as
    /// any operation may use it.
    Result<std::shared_ptr<LocalMemory>> register_memory(std::span<std::byte> memory,
                                                         std::shared_ptr<const void> owner = {});
    /// The same of memory of GPU `device`, as CUDA numbers it in this process (-1: of that on which
    /// it lies), at whose addresses nobody looks here. Its owner's kernels and this session's
    /// transfers know nothing of each other, but for what a transfer is told to wait for
    /// (StreamEvent). kUnsupported where this process has no CUDA.
    Result<std::shared_ptr<LocalMemory>> register_gpu_memory(
        std::span<std::byte> memory, int device, std::shared_ptr<const void> owner = {});
    /// Zeroes, registered, in memory that sessions of this host map: they copy with no system call.
    /// Pages are taken when they are touched. kResourceExhausted for more than can be had now
    /// (sys/memory_left.h), beside what allocate() has given and nobody has touched yet.
    Result<std::shared_ptr<LocalMemory>> allocate(std::size_t bytes);
    /// From now on no peer reaches it (transport/rma.h), and its owner may free it. Again: nothing.
    /// kUnavailable while operations of this session use it, kInvalidArgument for memory of another
    /// session.
    Status deregister_memory(const std::shared_ptr<LocalMemory>& memory);
    /// `descriptor` is what LocalMemory::serialised_descriptor() gave at `peer`, which was loaded.
    [[nodiscard]] Result<RemoteMemory> import_memory(const std::string& peer,
                                                     std::string_view descriptor) const;

    /// Tells peers that ask of a memory of this session, by that name (check_name() says what it
    /// may be), until withdraw(), deregister_memory() or close(); in the place of what the name
    /// stood for. kInvalidArgument for memory of another session, or of none, kResourceExhausted
    /// beyond 4096 names.
    Status publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory);
    /// Nothing where the name is not published. Who has fetched the memory still reaches it.
    void withdraw(const std::string& name);
    /// Asks `peer` itself for what it has published, over the connection, which it makes if need
    /// be. kUnavailable, with names that there are, where it has not that one; kTimeout, kPeerLost,
    /// kResourceExhausted where 256 questions wait for its answer.
    Result<RemoteMemory> fetch(const std::string& peer, const std::string& name, Deadline deadline);
    /// fetch() in two halves, for who waits in slices.
    Result<std::shared_ptr<const Inquiry>> ask(const std::string& peer, const std::string& name);
    [[nodiscard]] Result<RemoteMemory> await_answer(const Inquiry& inquiry, Deadline deadline);

    /// Requests of peers that were refused so far, for they were for what is not registered here,
    /// or beyond it. Those that peers of the host copy by themselves come not here.
    [[nodiscard]] std::uint64_t refused_requests() const;

    // One-sided. `notification` (at most kMostNotification bytes; none: empty) reaches the
    // peer once all data is there. Nothing moves before `after`, nor does what is posted behind it
    // for this peer. kInvalidArgument for blocks that are out of bounds, and local memory of
    // another session; kPeerLost for a peer that was not loaded here, and has gone since it called.

    Result<Work> read(const LocalExtent& into, const RemoteExtent& from,
                      std::span<const std::byte> notification = {}, StreamEvent after = {});
    Result<Work> write(const LocalExtent& from, const RemoteExtent& to,
                       std::span<const std::byte> notification = {}, StreamEvent after = {});
    /// The blocks of a plan that `indices` name, or all if there are none.
    Result<Work> post(transport::RmaOp op, std::shared_ptr<const Plan> plan,
                      std::span<const std::uint32_t> indices = {},
                      std::span<const std::byte> notification = {}, StreamEvent after = {});
    /// A read between memory of GPUs that keeps the order of a stream: it begins behind what the
    /// stream has got, and what that gets from now on finds its bytes, or whatever is there where
    /// the Work fails; no host waits for that, and the stream goes on in both cases. Waits for a
    /// connection where there is none. All of it is on its way at once: release() gives nothing up.
    /// kUnsupported where the bytes do not go by CUDA IPC, and while the stream is being captured;
    /// kTimeout, kPeerLost as of connect(), and the errors of read().
    ///
    /// There is none of writes: who ends a registration waits for those under way, which must not
    /// wait for a stream.
    Result<Work> read_in_order(const Stream& stream, std::shared_ptr<const Plan> plan,
                               Deadline deadline, std::span<const std::uint32_t> indices = {},
                               std::span<const std::byte> notification = {});

    // Two-sided:

    /// For messages with tags, of which the peer's program makes the counterparts. kInvalidArgument
    /// for a peer that is not known, a window of nothing, or a chunk out of its range.
    Result<Transfer> create_transfer(const std::string& peer, const TransferOptions& options = {});

    // Notifications:

    /// Behind nothing; connects if need be.
    Status notify(const std::string& peer, std::span<const std::byte> payload);
    /// Those that have come since the last call.
    [[nodiscard]] std::vector<Notification> notifications();
    /// The same, and waits for one at least; none when the deadline has passed.
    [[nodiscard]] std::vector<Notification> await_notifications(Deadline deadline);

    /// Ends everything, and tells the peers. Again: nothing.
    void close();
    /// The same, which waits as disconnect() does.
    Status close(const Interrupted& interrupted);

   private:
    Session(std::shared_ptr<runtime::Runtime> runtime, std::shared_ptr<SessionCore> core);
    /// To read, unless that is changed.
    [[nodiscard]] Result<TransferArgs> args(std::shared_ptr<const Plan> plan,
                                            std::span<const std::uint32_t> indices,
                                            std::span<const std::byte> notification) const;
    Result<Work> transfer(transport::RmaOp op, const LocalExtent& here, const RemoteExtent& there,
                          std::span<const std::byte> notification, StreamEvent after);

    std::shared_ptr<runtime::Runtime> runtime_;  // outlives what the core has of it
    ForkBound<SessionCore> core_;
};

}  // namespace pccl::p2p
