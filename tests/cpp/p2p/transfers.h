// SPDX-License-Identifier: Apache-2.0

// Two sessions that exchange messages with tags.
#pragma once

#include <pccl/transfer.h>
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {

class TransferTest : public Pair {
   protected:
    /// Sends `bytes` from `at` on.
    Message send(std::size_t at, std::size_t bytes, std::uint64_t tag) {
        return to_server_.post_send({mine_.local, {at, bytes}}, tag, test_deadline()).value();
    }
    Message receive(std::size_t at, std::size_t bytes, std::uint64_t tag) {
        return to_client_.post_recv({theirs_.local, {at, bytes}}, tag, test_deadline()).value();
    }
    /// Whether the server has from `to` on what the client has from `from` on.
    bool has_come(std::size_t to, std::size_t from, std::size_t bytes) {
        return std::equal(theirs_.bytes().begin() + static_cast<std::ptrdiff_t>(to),
                          theirs_.bytes().begin() + static_cast<std::ptrdiff_t>(to + bytes),
                          mine_.bytes().begin() + static_cast<std::ptrdiff_t>(from));
    }

    static Transfer transfer(Session& session, const Session& peer) {
        EXPECT_TRUE(session.load_remote_conn_info(peer.connection_info()).is_ok());
        return session.create_transfer(peer.id().name).value();
    }

    Transfer to_server_ = transfer(*client_, *server_);
    Transfer to_client_ = transfer(*server_, *client_);
};

}  // namespace pccl::p2p
