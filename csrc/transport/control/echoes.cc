// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/echoes.h"

#include <array>
#include <utility>

#include "csrc/sys/socket/echo.h"

namespace pccl::transport {
namespace {

/// Purpose of a query for echoes; other queries have none.
struct EchoPurpose {
    std::array<char, 8> value{'e', 'c', 'h', 'o', 'e', 's'};
    bool operator==(const EchoPurpose&) const = default;
};

}  // namespace

bool requests_echoes(const Introduction& introduction) {
    return introduction.service == Service::kQuery &&
           value_in<EchoPurpose>(introduction.purpose) == EchoPurpose();
}

Result<UniqueFd> connect_for_echoes(const ConnectArgs& args, const LinkRequest& request,
                                    Deadline deadline) {
    const Introduction introduction{
        .request = request, .service = Service::kQuery, .purpose = purpose_of(EchoPurpose())};
    PCCL_ASSIGN_OR_RETURN(auto sockets, connect_authenticated(args, {&introduction, 1}, deadline));
    return std::move(sockets.front());
}

EchoServer::~EchoServer() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
}

void EchoServer::accept(UniqueFd connection) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return;
    waiting_.push_back(std::move(connection));
    if (is_serving_) return;
    is_serving_ = true;
    // The previous thread has finished its work: its end takes no time.
    thread_ = std::make_unique<BackgroundThread>("pccl-echo", [this] { serve(); });
}

void EchoServer::serve() {
    for (UniqueFd connection = next(); connection.is_open(); connection = next())
        static_cast<void>(sys::answer_echoes(connection.get(), Deadline::after(kLongest)));
}

UniqueFd EchoServer::next() {
    const std::lock_guard lock(mutex_);
    is_serving_ = !waiting_.empty() && !is_over_;
    if (!is_serving_) return {};
    UniqueFd connection = std::move(waiting_.front());
    waiting_.pop_front();
    return connection;
}

}  // namespace pccl::transport
