// SPDX-License-Identifier: Apache-2.0

// What a program of somebody else does with an installed PCCL: a message from one session to
// another.
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string_view>

#include <pccl/session.h>
#include "csrc/comm/communicator.h"

namespace {

using pccl::Deadline;
using pccl::Status;
using pccl::p2p::Session;

Status pass_message() {
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    std::array<char, 32> outgoing{"hello from a"};
    std::array<char, 32> incoming{};
    PCCL_ASSIGN_OR_RETURN(const auto a, Session::create({.name = "a"}));
    PCCL_ASSIGN_OR_RETURN(const auto b, Session::create({.name = "b"}));
    PCCL_TRY(a->load_remote_conn_info(b->connection_info()).status());
    PCCL_TRY(b->load_remote_conn_info(a->connection_info()).status());
    PCCL_ASSIGN_OR_RETURN(const auto from,
                          a->register_memory(std::as_writable_bytes(std::span(outgoing))));
    PCCL_ASSIGN_OR_RETURN(const auto into,
                          b->register_memory(std::as_writable_bytes(std::span(incoming))));
    PCCL_ASSIGN_OR_RETURN(auto sends, a->create_transfer("b"));
    PCCL_ASSIGN_OR_RETURN(auto receives, b->create_transfer("a"));
    PCCL_TRY(receives.post_recv({into, {0, incoming.size()}}, 1, deadline).status());
    PCCL_TRY(sends.post_send({from, {0, outgoing.size()}}, 1, deadline).status());
    PCCL_TRY(receives.wait(deadline));
    PCCL_TRY(sends.wait(deadline));
    std::printf("%s\n", incoming.data());
    return Status::ok();
}

}  // namespace

int main() {
    const Status status = pass_message();
    if (!status.is_ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return status.is_ok() ? 0 : 1;
}
