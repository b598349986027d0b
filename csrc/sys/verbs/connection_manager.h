// SPDX-License-Identifier: Apache-2.0

// Connections of queue pairs by rdma_cm: the kernel exchanges their numbers, by IP addresses. iWARP
// devices have no other way.
//
// The queue pair is the caller's own, not one that librdmacm has made: for InfiniBand and RoCE the
// caller moves it through its states with the attributes of CmId::attributes(); for iWARP the
// kernel moves it. Without librdmacm's header this file is built without it, and everything is
// kUnavailable.
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/fork.h"

struct rdma_cm_id;
struct rdma_event_channel;

namespace pccl::sys::verbs {

/// librdmacm of this process.
struct CmLibrary {
    std::string path;
    std::string version;  // of rdma-core; empty: unknown
};
/// Returns which librdmacm is there. kUnavailable where there is none, or this build has no support
/// for it; kInvalidArgument for an unusable PCCL_RDMACM_LIBRARY.
[[nodiscard]] Result<CmLibrary> find_connection_manager();

/// Description of a queue pair for the other end.
struct CmParameters {
    std::string_view data{};       // kLongestData at most
    std::uint32_t pair = 0;        // number of the queue pair
    std::uint8_t reads_here = 0;   // outstanding reads of the peer that this end serves
    std::uint8_t reads_there = 0;  // outstanding reads of this end
    std::uint8_t retries = 7;
};

struct CmEvent;

/// Events of some CmIds. One thread at a time.
class CmChannel {
   public:
    static constexpr std::size_t kLongestData = 56;

    static Result<std::shared_ptr<CmChannel>> create();
    ~CmChannel();
    CmChannel(const CmChannel&) = delete;
    CmChannel& operator=(const CmChannel&) = delete;

    /// Returns a descriptor that is readable when next() has an event.
    [[nodiscard]] int fd() const;
    /// Takes the next event; nullopt: none now. `self` is this channel.
    static Result<std::optional<CmEvent>> next(const std::shared_ptr<CmChannel>& self);

   private:
    friend class CmId;
    explicit CmChannel(rdma_event_channel* channel) : channel_(channel) {}

    const ForkMark made_in_;
    rdma_event_channel* const channel_;
};

/// One end of a connection, or a listener. Its end disconnects. One thread at a time.
class CmId {
   public:
    static Result<CmId> create(std::shared_ptr<CmChannel> channel);
    CmId(CmId&& other) noexcept;
    CmId& operator=(CmId&& other) noexcept;
    CmId(const CmId&) = delete;
    CmId& operator=(const CmId&) = delete;
    ~CmId();

    /// Binds to an address of this host, which decides on device and port. Port 0: any.
    Status bind(const sockaddr& here);
    /// Returns the TCP or service port once bound.
    [[nodiscard]] std::uint16_t local_port() const;
    /// Returns the device, and the number of its port, once bound; empty: no device has the
    /// address.
    [[nodiscard]] std::string device() const;
    [[nodiscard]] int port() const;
    Status listen(int backlog);

    /// Begin to find the way to `peer`; an event announces the end of each.
    Status resolve_address(const sockaddr& peer, int milliseconds);
    Status resolve_route(int milliseconds);
    Status connect(const CmParameters& parameters);
    Status accept(const CmParameters& parameters);
    Status reject();
    /// Acknowledges the response of the peer, once the queue pair can receive and send.
    Status establish();
    /// Returns the attributes, with their mask, that move the queue pair to a state.
    struct Attributes {
        ibv_qp_attr values;
        int mask;
    };
    [[nodiscard]] Result<Attributes> attributes(ibv_qp_state state) const;
    [[nodiscard]] bool is(const void* id) const { return id_ == id; }

   private:
    friend class CmChannel;
    CmId(std::shared_ptr<CmChannel> channel, rdma_cm_id* id)
        : channel_(std::move(channel)), id_(id) {}

    ForkMark made_in_;
    std::shared_ptr<CmChannel> channel_;
    rdma_cm_id* id_ = nullptr;
};

struct CmEvent {
    enum class Kind : std::uint8_t {
        kAddressResolved,
        kRouteResolved,
        kRequest,      // a peer wants to connect: `id` and `data` are its
        kResponse,     // the peer has accepted; establish() is next
        kEstablished,  // the queue pairs are connected
        kEnded,        // the connection ended
        kFailed,       // no connection comes to be
    };
    Kind kind = Kind::kFailed;
    const void* of = nullptr;  // the CmId (CmId::is())
    int status = 0;            // an errno, or the reason of a rejection
    std::string name;          // "RDMA_CM_EVENT_REJECTED"
    std::optional<CmId> id{};
    std::string data{};  // of the peer
};

}  // namespace pccl::sys::verbs
