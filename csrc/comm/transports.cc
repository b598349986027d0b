#include "csrc/comm/transports.h"

#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/transport/shm/shm_transport.h"
#include "csrc/transport/tcp/tcp_transport.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

Result<std::unique_ptr<transport::Transport>> make_transport(TransportKind kind,
                                                             transport::Waiter& waiter) {
    if (kind == TransportKind::kShm) {
        PCCL_ASSIGN_OR_RETURN(auto made, transport::shm::ShmTransport::create(waiter));
        return std::unique_ptr<transport::Transport>(std::move(made));
    }
    const Config& config = process_config();
    PCCL_ASSIGN_OR_RETURN(auto made, transport::tcp::TcpTransport::create(
                                         waiter, {.interface = config.socket_ifname,
                                                  .data_sockets = config.tcp_sockets,
                                                  .peer_timeout = config.peer_timeout}));
    return std::unique_ptr<transport::Transport>(std::move(made));
}

}  // namespace

Result<std::vector<std::unique_ptr<transport::Transport>>> make_transports(
    transport::TransportFlags allowed, transport::Waiter& waiter) {
    std::vector<std::unique_ptr<transport::Transport>> transports;
    std::string reasons;
    for (const TransportKind kind : {TransportKind::kShm, TransportKind::kTcp}) {
        if (!allowed.has(kind)) continue;
        auto made = make_transport(kind, waiter);
        if (made.is_ok()) {
            log(LogLevel::kDebug, "transport ", to_string(kind), " at ", (*made)->address());
            transports.push_back(std::move(*made));
            continue;
        }
        reasons += concat("; ", to_string(kind), ": ", made.status().message());
        log(LogLevel::kInfo, "no transport ", to_string(kind), ": ", made.status().message());
    }
    if (!transports.empty()) return transports;
    return Status::unavailable(
        concat("no transport is left of \"", allowed.to_string(), "\"", reasons));
}

}  // namespace pccl::comm
