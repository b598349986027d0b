// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/send_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

// Copying this few bytes costs less than a system call for them.
constexpr std::size_t kShort = 8 * kKiB;
constexpr std::size_t kMostHeld = 64 * kKiB;

/// Bytes of one call as one run: bytes that were held back, and then pieces.
class ByteRun {
   public:
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): to clear vectors_ takes time
    ByteRun(Bytes held, std::span<const Bytes> pieces) : held_(held), pieces_(pieces) {
        for (const Bytes& piece : pieces) total_ += piece.size();
    }

    /// Returns `number`, and the bytes [begin, begin + room) of the run, or the first of these, as
    /// an array for the system call.
    [[nodiscard]] std::span<const iovec> part(Bytes number, std::size_t begin, std::size_t room) {
        std::size_t count = 0;
        if (!number.empty())
            vectors_[count++] = {const_cast<std::byte*>(number.data()), number.size()};
        const auto add = [&](Bytes piece) {
            const std::size_t skipped = std::min(begin, piece.size());
            begin -= skipped;
            const std::size_t taken = std::min(room, piece.size() - skipped);
            room -= taken;
            if (taken > 0)
                vectors_[count++] = {const_cast<std::byte*>(piece.data()) + skipped, taken};
        };
        add(held_);
        for (const Bytes& piece : pieces_) {
            if (count == vectors_.size() || room == 0) break;
            add(piece);
        }
        return std::span(vectors_).first(count);
    }
    [[nodiscard]] std::size_t bytes() const { return held_.size() + total_; }

   private:
    Bytes held_;
    std::span<const Bytes> pieces_;
    std::size_t total_ = 0;
    std::array<iovec, 65> vectors_;  // only those that part() returns are set
};

std::size_t bytes_of(std::span<const iovec> vectors) {
    std::size_t bytes = 0;
    for (const iovec& vector : vectors) bytes += vector.iov_len;
    return bytes;
}

struct SentPart {
    std::size_t taken = 0;  // bytes of the run
    bool is_short = false;  // no socket takes more now
};

/// Sends the run from `begin` on, as much as one socket takes.
Result<SentPart> send_part(BlockWriter& writer, ByteRun& run, std::size_t begin) {
    if (!writer.choose()) return SentPart{.is_short = true};
    do {
        const auto vectors = run.part(writer.number(), begin, writer.left());
        PCCL_ASSIGN_OR_RETURN(const std::size_t taken, sys::send_some(writer.socket(), vectors));
        if (taken == 0) continue;
        const bool is_short = taken < bytes_of(vectors);
        return SentPart{writer.advance(taken), is_short};
    } while (writer.pass_on());
    return SentPart{.is_short = true};
}

}  // namespace

TcpSendLink::TcpSendLink(LinkParts parts)
    : peer_(parts.peer), peer_name_(std::move(parts.peer_name)), watch_(std::move(parts.watch)) {
    for (Stripes& stripes : parts.channels) {
        channels_.push_back({BlockWriter(std::move(stripes)), {}});
        channels_.back().held.reserve(kShort);
    }
}

std::size_t TcpSendLink::capacity(ChannelId channel) const {
    return channels_[static_cast<std::size_t>(channel)].writer.capacity();
}

Result<std::size_t> TcpSendLink::send(ChannelId channel, Bytes bytes, Flush flush) {
    if (status_.is_set()) return status_.get();
    SendChannel& channel_state = channels_[static_cast<std::size_t>(channel)];
    if (flush == Flush::kLater && bytes.size() <= kShort &&
        channel_state.held.size() + bytes.size() <= kMostHeld) {
        channel_state.held.insert(channel_state.held.end(), bytes.begin(), bytes.end());
        return bytes.size();
    }
    return push(channel_state, {&bytes, 1});
}

Result<std::size_t> TcpSendLink::send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                               Flush flush) {
    if (flush == Flush::kLater) return SendLink::send_gathered(channel, pieces, flush);
    if (status_.is_set()) return status_.get();
    return push(channels_[static_cast<std::size_t>(channel)], pieces);
}

Result<bool> TcpSendLink::flush(ChannelId channel) {
    if (status_.is_set()) return status_.get();
    SendChannel& channel_state = channels_[static_cast<std::size_t>(channel)];
    if (channel_state.held.empty()) return true;
    PCCL_TRY(push(channel_state, {}).status());
    return channel_state.held.empty();
}

Result<std::size_t> TcpSendLink::push(SendChannel& channel_state, std::span<const Bytes> pieces) {
    const std::size_t held = channel_state.held.size();
    ByteRun run(channel_state.held, pieces);
    std::size_t sent = 0;
    while (sent < run.bytes()) {
        const auto part = send_part(channel_state.writer, run, sent);
        // The bytes taken before the fault count; the next call returns the fault again.
        if (!part.is_ok() && sent <= held) PCCL_TRY(fail(part.status()));
        if (!part.is_ok()) break;
        sent += part->taken;
        // A peer that left without reading leaves a window that stays shut: the kernel keeps
        // waiting.
        if (part->taken == 0 && sent <= held) PCCL_TRY(fail_if_left());
        if (part->is_short) break;
    }
    const std::size_t of_held = std::min(sent, held);
    channel_state.held.erase(channel_state.held.begin(),
                             channel_state.held.begin() + static_cast<std::ptrdiff_t>(of_held));
    return sent - of_held;
}

std::vector<sys::NetworkPath> TcpSendLink::paths() {
    std::vector<sys::NetworkPath> paths;
    for (const SendChannel& channel_state : channels_) {
        const Stripes& stripes = channel_state.writer.stripes();
        for (std::size_t i = 0; i < stripes.count(); ++i) {
            const int socket = stripes.socket(i);
            paths.push_back(
                {.interface = interfaces_.name_of(socket), .counters = sys::path_counters(socket)});
        }
    }
    return paths;
}

Status TcpSendLink::fail_if_left() {
    const Status left = watch_.look_idle();
    return left.is_ok() ? left : status_.set(left);
}

Status TcpSendLink::fail(const Status& fault) {
    const Status why =
        watch_.explain(Status::peer_lost(peer_, concat(peer_name_, ": ", fault.message())));
    return why.is_ok() ? why : status_.set(why);
}

void TcpSendLink::abort(const Status& reason) {
    static_cast<void>(status_.set(reason));
    watch_.close(reason);
    for (const SendChannel& channel_state : channels_) channel_state.writer.stripes().end(reason);
}

}  // namespace pccl::transport::tcp
