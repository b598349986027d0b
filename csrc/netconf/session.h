// A client's session with a NETCONF server, over any stream of bytes.
//
// Nothing blocks: who waits for many devices asks each session for interest(), waits for all of
// them, and lets those advance. call() is for who has one. After an error the session is over: what
// a server has not answered it may have done or not, which only reading from it anew can tell.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/netconf/frame.h"
#include "csrc/netconf/hello.h"
#include "csrc/netconf/reply.h"
#include "csrc/netconf/stream.h"

namespace pccl::netconf {

/// One thread at a time; one request at a time.
class PCCL_API Session {
   public:
    /// `most_bytes`: of a message of the server.
    explicit Session(std::unique_ptr<ByteStream> stream,
                     std::size_t most_bytes = FrameReader::kMostBytes)
        : stream_(std::move(stream)), reader_(most_bytes) {}

    /// Carries connecting on; true once the hellos are exchanged.
    [[nodiscard]] Result<bool> connect_step();
    [[nodiscard]] Status connect(Deadline deadline);
    /// Of a session that is connected.
    [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

    /// Begins a request, an operation as XML.
    void request(std::string_view operation);
    /// Carries it on; the reply once it is there. Replies to earlier requests are dropped, and
    /// notifications. Returns soon however many of these there are.
    [[nodiscard]] Result<std::optional<Reply>> advance();
    /// Both, until the deadline.
    [[nodiscard]] Result<Reply> call(std::string_view operation, Deadline deadline);
    /// Of the latest request.
    [[nodiscard]] std::uint64_t message_id() const { return message_id_; }

    /// What ends the wait for the next step.
    [[nodiscard]] sys::Interest interest() const;
    /// As ByteStream has it.
    [[nodiscard]] std::string awaited() const { return stream_->awaited(); }
    /// Waits for that, at most `longest`.
    void await_news(Duration longest) const;
    /// Ends the session without a word, as a deadline that has passed does.
    void abandon(const Status& why);
    [[nodiscard]] bool is_over() const { return !fault_.is_ok(); }

   private:
    /// The next message, or nullopt.
    [[nodiscard]] Result<std::optional<std::string>> exchange();
    [[nodiscard]] Status write_pending();
    [[nodiscard]] Status read_available();
    /// The reply, if the message is the one that is awaited.
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
    bool has_unread_ = false;  // bytes, which no descriptor may show
};

/// kTimeout, and that `what` was not answered.
[[nodiscard]] PCCL_API Status no_answer(std::string_view what);

}  // namespace pccl::netconf
