// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/inquiry.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::transport {

Result<std::string> inquire(const ConnectArgs& args, const Introduction& introduction,
                            Deadline deadline) {
    const Rank peer = introduction.request.destination;
    PCCL_ASSIGN_OR_RETURN(const auto sockets,
                          connect_authenticated(args, {&introduction, 1}, deadline));
    std::uint32_t bytes = 0;
    Status received = sys::receive_all(sockets.front().get(),
                                       std::as_writable_bytes(std::span(&bytes, 1)), deadline);
    if (received.is_ok() && bytes > kLongestAnswer)
        return Status::peer_lost(peer, concat(peer_name(peer), " answers with ", bytes, " bytes"));
    std::string text(received.is_ok() ? bytes : 0, '\0');
    if (received.is_ok())
        received = sys::receive_all(sockets.front().get(), std::as_writable_bytes(std::span(text)),
                                    deadline);
    if (received.is_ok()) return text;
    return Status(received.code(), concat(peer_name(peer), " did not answer: ", received.message()),
                  peer);
}

void answer(int socket, std::string_view text) {
    const auto bytes = static_cast<std::uint32_t>(std::min(text.size(), kLongestAnswer));
    const iovec length{const_cast<std::uint32_t*>(&bytes), sizeof bytes};
    const iovec body{const_cast<char*>(text.data()), bytes};
    const std::array<iovec, 2> pieces{length, body};
    // A fresh socket takes the whole answer; the peer may have left.
    static_cast<void>(sys::send_some(socket, pieces));
}

Result<std::string> request_status(const sys::Address& door, const Secret& job,
                                   const StatusQuestion& question, Deadline deadline) {
    return inquire({.address = door, .secret = job, .of_strangers = StatusCode::kInvalidArgument},
                   {.request = {.group = kOnlookers, .source = kNoRank, .destination = kNoRank},
                    .service = Service::kStatus,
                    .purpose = purpose_of(question)},
                   deadline);
}

}  // namespace pccl::transport
