// SPDX-License-Identifier: Apache-2.0

// Client session with a NETCONF server, over any byte stream.
//
// Nothing blocks: a caller with many devices collects interest() of each session, waits for all of
// them, and advances the ready ones. call() is for a single session. After an error the session is
// over: the server may or may not have carried out an unanswered request, which only reading from
// it anew can show.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include "csrc/netconf/frame.h"
#include "csrc/netconf/hello.h"
#include "csrc/netconf/reply.h"
#include "csrc/netconf/stream.h"

namespace pccl::netconf {

/// Session. One thread at a time; one request at a time.
class PCCL_API NetconfSession {
   public:
    /// Takes a stream; `most_bytes` limits a message of the server.
    explicit NetconfSession(std::unique_ptr<ByteStream> stream,
                            std::size_t most_bytes = FrameReader::kMostBytes)
        : stream_(std::move(stream)), reader_(most_bytes) {}

    /// Makes progress on the connection; returns true once the hellos are exchanged.
    [[nodiscard]] Result<bool> connect_step();
    [[nodiscard]] Status connect(Deadline deadline);
    /// Returns the server's capabilities, once connected.
    [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

    /// Begins a request; `operation` is its XML.
    void request(std::string_view operation);
    /// Makes progress on the request; returns the reply once it has arrived. Drops replies to
    /// earlier requests, and notifications. Returns soon even if the server sends these without
    /// end.
    [[nodiscard]] Result<std::optional<Reply>> advance();
    /// Sends a request and waits for its reply, until the deadline.
    [[nodiscard]] Result<Reply> call(std::string_view operation, Deadline deadline);
    /// Returns the id of the latest request.
    [[nodiscard]] std::uint64_t message_id() const { return message_id_; }

    /// Returns the event that ends the wait for the next step.
    [[nodiscard]] sys::Interest interest() const;
    /// Returns ByteStream::awaited().
    [[nodiscard]] std::string awaited() const { return stream_->awaited(); }
    /// Waits for interest(), at most `longest`.
    void await_news(Duration longest) const;
    /// Ends the session without a message to the server, like a passed deadline.
    void abandon(const Status& why);
    [[nodiscard]] bool is_over() const { return !fault_.is_ok(); }

   private:
    /// Returns the next message, or nullopt.
    [[nodiscard]] Result<std::optional<std::string>> exchange();
    [[nodiscard]] Status write_pending();
    [[nodiscard]] Status read_available();
    /// Returns the reply, if the message is the awaited one.
    [[nodiscard]] Result<std::optional<Reply>> reply_in(std::string_view message) const;
    template <typename T>
    [[nodiscard]] Result<T> keep(Result<T> result);

    std::unique_ptr<ByteStream> stream_;  // null: over
    FrameReader reader_;
    std::string outgoing_;
    Capabilities capabilities_;
    std::uint64_t message_id_ = 0;
    Status fault_;
    bool has_exchanged_hellos_ = false;
    bool is_connected_ = false;
    bool has_unread_ = false;  // bytes that no descriptor may show
};

/// Returns a kTimeout: `what` was not answered.
[[nodiscard]] PCCL_API Status no_answer(std::string_view what);

}  // namespace pccl::netconf
