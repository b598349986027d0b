// SPDX-License-Identifier: Apache-2.0

// Endpoint for transfers between processes that are not ranks of one collective. The processes come
// and go, and access each other's registered memory without a call by the peer.
//
//     auto a = Session::create({.name = "prefill-0"}).value();  // listens from here on
//     auto memory = a->register_memory({data, bytes}).value();
//     hand_over(a->connection_info(), memory->serialised_descriptor());
//
//     auto b = Session::create({.name = "decode-3"}).value();   // in another process
//     b->load_remote_conn_info(info);
//     auto theirs = b->import_memory("prefill-0", descriptor).value();
//     auto work = b->read({mine, {0, n}}, {theirs, {0, n}}).value();  // connects if needed
//     work.wait(Deadline::after(2s));
//
// All sessions are equal, and no call waits for the peer's program: the progress threads of both
// processes do the work. Everything here is thread-safe.
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

#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/memory.h>
#include <pccl/status.h>
#include <pccl/transfer.h>
#include <pccl/types.h>

namespace pccl::p2p {

class ConnectRequest;
class Inquiry;

/// Options of a session.
struct SessionOptions {
    std::string name;  // as check_name() requires
    /// Address of this host ("10.0.0.4"), or a value as for PCCL_SOCKET_IFNAME. Empty:
    /// PCCL_SOCKET_IFNAME.
    std::string listen{};
    /// Transports, such as "shm,tcp". Empty: PCCL_TRANSPORTS.
    std::string transports{};
    /// Sockets per TCP stream on which this session sends; large transfers use all of them. 1 to
    /// 16; 0: PCCL_TCP_SOCKETS.
    int tcp_sockets = 0;
    Duration connect_timeout = std::chrono::seconds(10);  // of each connection
};

/// Endpoint for transfers, messages and notifications. Thread-safe. In a child of fork() every
/// function that returns a Status returns kUnavailable; the others return empty results and do
/// nothing.
class PCCL_API Session {
   public:
    /// Callback that returns ok, or the reason why a wait must end.
    using Interrupted = std::function<Status()>;

    /// Creates a session, which listens at once. Returns kInvalidArgument for bad options,
    /// kUnavailable in a child of fork(), and where none of the requested transports is available.
    static Result<std::unique_ptr<Session>> create(const SessionOptions& options);
    /// Closes the session as close() does.
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Returns the name and the incarnation of this session.
    [[nodiscard]] const SessionId& id() const;
    /// Returns kUnavailable in a child of fork().
    [[nodiscard]] Status check_usable() const;

    // Peers:

    /// Returns the connection info for peers. It contains a secret: exchange it over a trusted
    /// channel.
    [[nodiscard]] std::string connection_info() const;
    /// Loads the connection info of a peer, and returns the peer's id. Forgets an earlier
    /// incarnation of that session, and closes the connection to it. Returns kInvalidArgument for
    /// malformed info.
    Result<SessionId> load_remote_conn_info(std::string_view info);
    /// Waits until the peer is connected. Transfers connect by themselves. An existing connection
    /// counts only if the peer answers a ping on it; otherwise it is lost, and a new one is made.
    /// The ping is ordered after all that the peer's program has yet to receive, as inquiries are
    /// (fetch()). Returns kInvalidArgument for a name that was neither loaded nor has called here,
    /// kPeerLost where the peer is gone, kTimeout after `deadline` or connect_timeout,
    /// kResourceExhausted where 256 inquiries wait for the peer's answer.
    Status connect(const std::string& peer, Deadline deadline);
    /// Begins connect(), for callers that wait in slices with await_connection(). The request is
    /// opaque, and not thread-safe.
    [[nodiscard]] std::shared_ptr<ConnectRequest> begin_connect(const std::string& peer) const;
    /// Returns the outcome, or nullopt where `deadline` passes first.
    std::optional<Status> await_connection(ConnectRequest& call, Deadline deadline);
    /// Waits until a peer has connected, and returns its id. Reports each peer once, in order of
    /// arrival, and again after a reconnect; skips peers that are gone by then. Returns kTimeout
    /// after `deadline`, kAborted where this session closes.
    Result<SessionId> accept(Deadline deadline);
    /// Waits for one peer, which may still be unknown. Returns at once where there is a connection,
    /// no matter which side made it. An empty name stands for any peer.
    Result<SessionId> accept(const std::string& peer, Deadline deadline);
    /// Fails everything in progress with this peer, and notifies it. The peer may connect again.
    /// Waits at most 20 s until queued notifications are sent. Calls `interrupted` meanwhile; if it
    /// returns an error, drops them and returns that error.
    Status disconnect(const std::string& peer, const Interrupted& interrupted = {});
    /// Returns the connected peers.
    [[nodiscard]] std::vector<SessionId> peers() const;

    // Memory:

    /// Registers memory, which peers can access until deregister_memory() or close(). The session
    /// keeps `owner` while any operation may use the memory.
    Result<std::shared_ptr<LocalMemory>> register_memory(std::span<std::byte> memory,
                                                         std::shared_ptr<const void> owner = {});
    /// Registers memory of GPU `device`, a CUDA ordinal of this process (-1: the GPU on which the
    /// memory lies). The host never dereferences its addresses. Transfers are not ordered with the
    /// owner's kernels, except by StreamEvent. Returns kUnsupported where this process has no CUDA.
    Result<std::shared_ptr<LocalMemory>> register_gpu_memory(
        std::span<std::byte> memory, int device, std::shared_ptr<const void> owner = {});
    /// Allocates and registers zeroed memory, which sessions of this host map: they copy without a
    /// system call. The system provides pages when they are first touched. Returns
    /// kResourceExhausted for more than the memory that is left on the host or in its cgroup, less
    /// the untouched memory of earlier allocate() calls.
    Result<std::shared_ptr<LocalMemory>> allocate(std::size_t bytes);
    /// Ends the access of peers; the owner may then free the memory. Waits for writes in progress,
    /// two seconds at most. Does nothing the second time. Returns kUnavailable while operations of
    /// this session use it, kInvalidArgument for memory of another session.
    Status deregister_memory(const std::shared_ptr<LocalMemory>& memory);
    /// Imports memory of `peer`, which must be loaded. `descriptor` is the result of
    /// LocalMemory::serialised_descriptor() there.
    [[nodiscard]] Result<RemoteMemory> import_memory(const std::string& peer,
                                                     std::string_view descriptor) const;

    /// Publishes memory to peers that fetch it by `name` (check_name()), until withdraw(),
    /// deregister_memory() or close(). Replaces an earlier entry of that name. Returns
    /// kInvalidArgument for null or memory of another session, kResourceExhausted beyond 4096
    /// names.
    Status publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory);
    /// Withdraws a name. Does nothing where it is not published. Peers that have fetched the memory
    /// keep their access.
    void withdraw(const std::string& name);
    /// Returns memory that `peer` has published, by an inquiry over the connection; connects first
    /// if necessary. Returns kUnavailable, with some published names, where that name is not
    /// published; kTimeout; kPeerLost; kResourceExhausted where 256 inquiries wait for the peer's
    /// answer.
    Result<RemoteMemory> fetch(const std::string& peer, const std::string& name, Deadline deadline);
    /// Begins fetch(), for callers that wait in slices with await_answer(). The inquiry is opaque.
    Result<std::shared_ptr<const Inquiry>> query(const std::string& peer, const std::string& name);
    /// Returns the answer to an inquiry; kTimeout where `deadline` passes first.
    [[nodiscard]] Result<RemoteMemory> await_answer(const Inquiry& inquiry, Deadline deadline);

    /// Returns the number of peers' requests that were refused, because their memory is not
    /// registered here or they exceed it. Accesses by peers of this host that copy by themselves
    /// are not counted.
    [[nodiscard]] std::uint64_t refused_requests() const;

    // One-sided transfers. `notification` (0 to kMostNotification bytes; empty: none) reaches the
    // peer once all data is in place. No data moves before `after`, and later transfers to this
    // peer wait behind it. Errors: kInvalidArgument for blocks out of bounds and for local memory
    // of another session, kPeerLost for a peer that was not loaded here and has gone since it
    // called.

    /// Posts a read of one block of the peer's memory. Connects first if necessary.
    Result<Work> read(const LocalExtent& into, const RemoteExtent& from,
                      std::span<const std::byte> notification = {}, StreamEvent after = {});
    /// Posts a write of one block into the peer's memory. Connects first if necessary.
    Result<Work> write(const LocalExtent& from, const RemoteExtent& to,
                       std::span<const std::byte> notification = {}, StreamEvent after = {});
    /// Transfers the blocks of a plan that `indices` name, or all of them if there are none.
    Result<Work> post(RmaOp op, std::shared_ptr<const Plan> plan,
                      std::span<const std::uint32_t> indices = {},
                      std::span<const std::byte> notification = {}, StreamEvent after = {});
    /// Reads between GPU memories in stream order: the read begins after the work that the stream
    /// has got so far, and later work finds its bytes (undefined contents if the Work fails). The
    /// host does not wait for the stream, and the stream continues in both cases. Waits for a
    /// connection where there is none. Everything is posted at once, so release() has no effect.
    /// Returns kUnsupported where the bytes do not go by CUDA IPC and while the stream is being
    /// captured, kTimeout and kPeerLost as connect() does, and the errors of read().
    ///
    /// There is no such write: the end of a registration waits for the writes in progress, and must
    /// not wait for a stream.
    Result<Work> read_in_order(const Stream& stream, std::shared_ptr<const Plan> plan,
                               Deadline deadline, std::span<const std::uint32_t> indices = {},
                               std::span<const std::byte> notification = {});

    // Two-sided:

    /// Creates a handle for messages with tags; the peer's program posts their counterparts.
    /// Returns kInvalidArgument for an unknown peer, a window of 0, or a chunk out of range.
    Result<Transfer> create_transfer(const std::string& peer, const TransferOptions& options = {});

    // Notifications:

    /// Sends a notification that is not ordered after transfers. Connects first if necessary.
    Status notify(const std::string& peer, std::span<const std::byte> payload);
    /// Returns the notifications that have arrived since the last call.
    [[nodiscard]] std::vector<Notification> notifications();
    /// Waits for at least one notification, and returns those that have arrived; none when
    /// `deadline` has passed.
    [[nodiscard]] std::vector<Notification> await_notifications(Deadline deadline);

    /// Fails everything in progress, and notifies the peers. Does nothing the second time.
    void close();
    /// Closes the session, and waits as disconnect() does.
    Status close(const Interrupted& interrupted);

   private:
    struct Members;
    explicit Session(std::unique_ptr<Members> members);

    const std::unique_ptr<Members> members_;
};

}  // namespace pccl::p2p
