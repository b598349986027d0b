#include "csrc/runtime/transports.h"

#include <array>

#include "csrc/base/config.h"
#include "csrc/base/log.h"
#include "csrc/base/text.h"
#include "csrc/transport/shm/shm_transport.h"
#include "csrc/transport/tcp/tcp_transport.h"

namespace pccl::runtime {
namespace {

using transport::TransportKind;

constexpr std::size_t kLongestShown = 64;
constexpr std::array kKinds{TransportKind::kShm, TransportKind::kTcp};  // fastest first

transport::TransportFlags all_kinds() {
    transport::TransportFlags flags;
    for (const TransportKind kind : kKinds) flags = flags | kind;
    return flags;
}

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

Result<transport::TransportFlags> transports_named(std::string_view names) {
    if (names.empty()) return transport::TransportFlags::all();
    auto flags = transport::TransportFlags::parse(names);
    if (flags.is_ok() && (*flags & all_kinds()) == *flags) return flags;
    return Status::invalid_argument(concat("\"", names.substr(0, kLongestShown),
                                           "\" asks for a transport that is not there; there are ",
                                           all_kinds().to_string()));
}

Result<std::vector<std::unique_ptr<transport::Transport>>> make_transports(
    transport::TransportFlags allowed, transport::Waiter& waiter) {
    std::vector<std::unique_ptr<transport::Transport>> transports;
    std::string reasons;
    for (const TransportKind kind : kKinds) {
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

}  // namespace pccl::runtime
