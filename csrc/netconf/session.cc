// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/netconf/message.h"

namespace pccl::netconf {
namespace {

/// Time for which advance() reads messages other than replies before it returns.
constexpr Duration kSlice = std::chrono::milliseconds(20);

std::string_view operation_in(std::string_view xml) {
    xml.remove_prefix(std::min<std::size_t>(xml.size(), 1));
    return xml.substr(0, xml.find_first_of("/> "));
}

}  // namespace

Status no_answer(std::string_view what) {
    return Status::timeout(concat("the deadline passed before an answer to ", what, " came"));
}

Result<bool> NetconfSession::connect_step() {
    if (is_connected_) return true;
    if (is_over()) return fault_;
    if (!has_exchanged_hellos_) {
        const auto connected = keep(stream_->connect_step());
        if (!connected.is_ok() || !*connected) return connected;
        outgoing_ = framed(client_hello(), Framing::kEndOfMessage);
        has_exchanged_hellos_ = true;
    }
    PCCL_ASSIGN_OR_RETURN(const auto hello, exchange());
    if (!hello) return false;
    PCCL_ASSIGN_OR_RETURN(capabilities_, keep(parse_hello(*hello)));
    reader_.set_framing(capabilities_.framing());
    is_connected_ = true;
    return true;
}

Status NetconfSession::connect(Deadline deadline) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const bool connected, connect_step());
        if (connected) return Status::ok();
        if (deadline.passed()) abandon(no_answer(has_exchanged_hellos_ ? "hello" : "connecting"));
        await_news(deadline.slice());
    }
}

void NetconfSession::request(std::string_view operation) {
    outgoing_ +=
        framed(concat("<?xml version=\"1.0\" encoding=\"UTF-8\"?><rpc xmlns=\"", kBaseNamespace,
                      "\" message-id=\"", ++message_id_, "\">", operation, "</rpc>"),
               capabilities_.framing());
}

Result<std::optional<Reply>> NetconfSession::advance() {
    // A server may send other messages without end, and callers have deadlines.
    const Deadline slice = Deadline::after(kSlice);
    do {
        PCCL_ASSIGN_OR_RETURN(const auto message, exchange());
        if (!message) return std::optional<Reply>{};
        PCCL_ASSIGN_OR_RETURN(auto reply, keep(reply_in(*message)));
        if (reply) return reply;
    } while (!slice.passed());
    has_unread_ = true;
    return std::optional<Reply>{};
}

Result<Reply> NetconfSession::call(std::string_view operation, Deadline deadline) {
    request(operation);
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(auto reply, advance());
        if (reply) return *std::move(reply);
        if (deadline.passed()) abandon(no_answer(operation_in(operation)));
        await_news(deadline.slice());
    }
}

Result<std::optional<std::string>> NetconfSession::exchange() {
    if (is_over()) return fault_;
    if (const Status sent = write_pending(); !sent.is_ok()) {
        abandon(sent);
        return sent;
    }
    PCCL_ASSIGN_OR_RETURN(auto message, keep(reader_.next()));
    if (message) return message;
    // Bytes that came before a connection broke may contain the reply.
    const Status read = read_available();
    PCCL_ASSIGN_OR_RETURN(message, keep(reader_.next()));
    if (!message && !read.is_ok()) {
        abandon(read);
        return read;
    }
    return message;
}

Status NetconfSession::write_pending() {
    while (!outgoing_.empty()) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t taken, stream_->write_some(outgoing_));
        if (taken == 0) break;
        outgoing_.erase(0, taken);
    }
    return Status::ok();
}

Status NetconfSession::read_available() {
    std::array<char, 16384> bytes{};
    // The bound keeps a server that never stops from blocking the caller past its deadline.
    constexpr int kMostReads = 64;
    for (int reads = 0; reads < kMostReads; ++reads) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t got, stream_->read_some(bytes));
        has_unread_ = got > 0;
        if (got == 0) break;
        reader_.add({bytes.data(), got});
    }
    return Status::ok();
}

Result<std::optional<Reply>> NetconfSession::reply_in(std::string_view message) const {
    auto root = read_message(message);
    if (!root.is_ok()) return protocol_error(root.status().message());
    if (root->name == "notification") return std::optional<Reply>{};
    PCCL_ASSIGN_OR_RETURN(auto reply, parse_reply(std::move(root).value()));
    const auto id = number_in<std::uint64_t>(reply.message_id, 1, message_id_);
    if (!id) return protocol_error("a reply carries no message-id of ours");
    if (*id != message_id_) return std::optional<Reply>{};
    return std::optional(std::move(reply));
}

sys::Interest NetconfSession::interest() const {
    if (stream_ == nullptr || has_unread_) return {};
    sys::Interest interest = stream_->interest();
    if (!outgoing_.empty() && has_exchanged_hellos_) interest.output = true;
    return interest;
}

void NetconfSession::await_news(Duration longest) const {
    const sys::Interest interest = this->interest();
    constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);
    sys::wait_for_any({&interest, 1},
                      interest.fd < 0 ? std::min<Duration>(longest, kBetweenLooks) : longest);
}

void NetconfSession::abandon(const Status& why) {
    if (is_over()) return;
    fault_ = why;
    stream_.reset();
}

template <typename T>
Result<T> NetconfSession::keep(Result<T> result) {
    if (!result.is_ok()) abandon(result.status());
    return result;
}

}  // namespace pccl::netconf
