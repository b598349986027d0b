// Shared memory between processes of one host.
//
// A link is a memfd of rings that the sender makes. It goes to the receiver, with the sender's
// doorbell, over a unix socket (in the abstract namespace, so that nothing stays in the file
// system) on which both have proven the group's secret; the receiver's doorbell comes back. Both
// processes must run as one user. The socket stays open: its end tells that the peer has left.
// Regions travel the same way.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/transport/control/handshake_server.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/region.h"
#include "csrc/transport/region_memory.h"
#include "csrc/transport/shm/link.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class PCCL_API ShmTransport final : public Transport {
   public:
    /// `waiter` outlives the transport and its links. kUnavailable where memfd or unix sockets are
    /// missing.
    static Result<std::unique_ptr<ShmTransport>> create(Waiter& waiter);

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kShm; }
    [[nodiscard]] std::string address() const override;
    [[nodiscard]] Status reaches(const std::string& address) const override;
    Result<std::unique_ptr<Dial>> dial(const std::string& address, const LinkRequest& request,
                                       const Secret& secret) override;
    Result<std::unique_ptr<Region>> share(const RegionRequest& request, const Secret& secret,
                                          Deadline deadline) override;
    Result<std::string> inquire(const std::string& address, const LinkRequest& request,
                                const Secret& secret, Deadline deadline) override;
    Status tell(const std::string& address, const LinkRequest& request, const Secret& secret,
                const Status& reason, Deadline deadline) override;
    Status knock(const std::string& address, Deadline deadline) override;
    [[nodiscard]] int accept_fd() const override { return server_->poll_fd(); }
    void accept(Acceptor& acceptor) override;

   private:
    class ShmDial;
    /// A proven connection whose memory has not arrived yet.
    struct Arrival {
        UniqueFd socket;
        Introduction introduction;
        Deadline deadline;
    };

    ShmTransport(Waiter& waiter, std::string host) : waiter_(waiter), host_(std::move(host)) {}
    Result<UniqueFd> connect(const std::string& address, const Introduction& introduction,
                             const Secret& secret, Deadline deadline);
    /// True when the arrival is over: accepted or refused.
    bool receive_memory(Arrival& arrival, Acceptor& acceptor);
    /// False while the memory has not come.
    Result<bool> receive_link(Arrival& arrival, Acceptor& acceptor);
    Result<bool> receive_region(Arrival& arrival, Acceptor& acceptor);
    Result<std::unique_ptr<RecvLink>> make_receiver(Arrival& arrival,
                                                    std::span<UniqueFd> descriptors);

    Waiter& waiter_;
    const std::string host_;
    std::unique_ptr<HandshakeServer> server_;
    std::list<Arrival> arrivals_;
    RegionStock stock_;
};

/// Bytes of the region of a group of `ranks`: at most 16 MiB, from 2 MiB for each rank of a small
/// group to 64 KiB for each rank of a large one.
[[nodiscard]] PCCL_API std::size_t region_bytes(int ranks);
/// What the region of a further group may be cut down to.
[[nodiscard]] PCCL_API std::size_t least_region_bytes(int ranks);

/// Whether two addresses of ShmTransports are of one host.
[[nodiscard]] PCCL_API bool same_host(const std::string& a, const std::string& b);

}  // namespace pccl::transport::shm
