// Shared memory between processes of one host.
//
// A link is a memfd of rings that the sender makes. It goes to the receiver, with the sender's
// doorbell, over a unix socket (in the abstract namespace, so that nothing stays in the file
// system) on which both have proven the group's secret; the receiver's doorbell comes back. Both
// processes must run as one user. The socket stays open: its end tells that the peer is gone.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/doorbell.h"
#include "csrc/transport/handshake_server.h"
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
    Result<std::unique_ptr<SendLink>> connect(const std::string& address,
                                              const LinkRequest& request, const Secret& secret,
                                              Deadline deadline) override;
    [[nodiscard]] int accept_fd() const override { return server_->poll_fd(); }
    void accept(Acceptor& acceptor) override;

   private:
    /// A proven connection whose memory has not arrived yet.
    struct Arrival {
        UniqueFd socket;
        LinkRequest request;
        Deadline deadline;
    };

    ShmTransport(Waiter& waiter, std::string host) : waiter_(waiter), host_(std::move(host)) {}
    /// True when the arrival is over: accepted or refused.
    bool receive_memory(Arrival& arrival, Acceptor& acceptor);
    Result<std::unique_ptr<RecvLink>> make_receiver(Arrival& arrival, std::vector<UniqueFd> memory);

    Waiter& waiter_;
    const std::string host_;
    std::unique_ptr<HandshakeServer> server_;
    std::list<Arrival> arrivals_;
};

/// Whether two addresses of ShmTransports are of one host.
[[nodiscard]] PCCL_API bool same_host(const std::string& a, const std::string& b);

}  // namespace pccl::transport::shm
