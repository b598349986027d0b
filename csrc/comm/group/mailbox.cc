// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/group/mailbox.h"

#include <algorithm>
#include <cstring>

#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/comm/group/options.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

using runtime::EndedOperations;
using transport::kMessageChannel;

namespace {

abi::MessageHeader header_of(const MessageOperation::Envelope& envelope) {
    const int type = envelope.type ? static_cast<int>(*envelope.type) + 1 : 0;
    return {.magic = abi::kMessageMagic,
            .data_type = static_cast<std::uint16_t>(type),
            .tag = envelope.tag,
            .bytes = envelope.bytes};
}

/// Returns "float32", or "type 77" for an invalid type of a peer.
std::string type_of(const abi::MessageHeader& header) {
    if (header.data_type <= kDataTypes)
        return std::string(to_string(static_cast<DataType>(header.data_type - 1)));
    return concat("type ", header.data_type - 1);
}

}  // namespace

void MessageOperation::begin(std::shared_ptr<runtime::ProgressEngine> engine, TimePoint now,
                             Deadline deadline) {
    using runtime::FlightKind;
    const bool sends = envelope_.direction == Direction::kSend;
    const auto ticket = runtime::flight_recorder().begin(
        flight_group_, sends ? FlightKind::kSend : FlightKind::kReceive,
        {.peer = envelope_.peer, .tag = envelope_.tag, .bytes = envelope_.bytes}, now);
    Operation::begin(std::move(engine), now, deadline, ticket);
}

bool MessageOperation::wants(Rank source, std::int32_t tag) const {
    return tag == envelope_.tag && (envelope_.peer == kAnySource || envelope_.peer == source);
}

std::string MessageOperation::describe() const {
    const bool sends = envelope_.direction == Direction::kSend;
    const std::string peer =
        envelope_.peer == kAnySource ? "any rank" : concat("rank ", envelope_.peer);
    return concat(sends ? "send to " : "receive from ", peer, " (tag ", envelope_.tag, ", ",
                  envelope_.bytes, " bytes)");
}

AwaitedRanks MessageOperation::awaited() const {
    static_assert(kAnySource == kNoRank);
    const bool receives = envelope_.direction == Direction::kReceive;
    return {{envelope_.peer, receives ? Awaited::Act::kSend : Awaited::Act::kReceive}};
}

Result<bool> MessageOperation::progress(LinkTable& links, bool& moved) {
    PCCL_ASSIGN_OR_RETURN(auto* link, links.send_link({envelope_.peer, 0}));
    if (link == nullptr) return false;
    const abi::MessageHeader header = header_of(envelope_);
    const auto head = std::as_bytes(std::span(&header, 1));
    while (moved_ < sizeof header + envelope_.bytes) {
        const bool in_header = moved_ < sizeof header;
        const std::size_t past = moved_ - std::min(moved_, sizeof header);
        const transport::Bytes rest =
            in_header ? head.subspan(moved_)
                      : transport::Bytes(envelope_.data + past, envelope_.bytes - past);
        const bool more = in_header && envelope_.bytes > 0;
        PCCL_ASSIGN_OR_RETURN(const std::size_t bytes,
                              link->send(kMessageChannel, rest,
                                         more ? transport::Flush::kLater : transport::Flush::kNow));
        if (bytes == 0) return false;
        moved_ += bytes;
        moved = true;
    }
    return link->flush(kMessageChannel);
}

void Mailbox::MessageSource::reset_front() {
    header_received = payload_received = 0;
    into.reset();
    aside.reset();
}

void Mailbox::post(MessagePtr message) {
    ++pending_;
    const auto& envelope = message->envelope();
    if (envelope.direction == MessageOperation::Direction::kSend)
        outgoing_[static_cast<std::size_t>(envelope.peer)].push_back(std::move(message));
    else
        receives_.push_back(std::move(message));
}

void Mailbox::end(const MessagePtr& message, Status status, Rank source, EndedOperations& ended) {
    --pending_;
    const bool is_counted = status.is_ok();
    message->finish(std::move(status), source);
    if (is_counted) count(*message);
    ended.add(message);
}

void Mailbox::count(const MessageOperation& message) {
    using Direction = runtime::GroupUsage::Direction;
    const bool sends = message.envelope().direction == MessageOperation::Direction::kSend;
    ++(sends ? counts_.sent : counts_.received);
    usage_.add_message({.direction = sends ? Direction::kSent : Direction::kReceived,
                        .bytes = message.envelope().bytes,
                        .begun = message.issued(),
                        .ended = message.ended()});
}

Status Mailbox::check_other_half(const MessageOperation& message) const {
    const MessageOperation::Envelope& half = message.envelope();
    if (half.peer != self_) return Status::ok();
    const bool sends = half.direction == MessageOperation::Direction::kSend;
    const auto is_other = [&](const MessagePtr& posted) {
        return sends ? posted->wants(self_, half.tag) : posted->envelope().tag == half.tag;
    };
    const auto& queue = outgoing_[static_cast<std::size_t>(self_)];
    if (sends ? std::any_of(receives_.begin(), receives_.end(), is_other)
              : std::any_of(queue.begin(), queue.end(), is_other))
        return Status::ok();
    return Status::invalid_argument(
        concat(message.describe(), ": that is this rank itself, which ",
               sends ? "receives nothing from itself yet; post recv(..., async_op=True) first"
                     : "sends nothing to itself yet; post send(..., async_op=True) first"));
}

Status Mailbox::compare(const MessageOperation& receive, Rank source,
                        const abi::MessageHeader& sent) {
    const abi::MessageHeader ours = header_of(receive.envelope());
    const auto differ = [&](const auto&... what) {
        return Status::mismatch(source,
                                concat(receive.describe(), ": rank ", source, " sent ", what...));
    };
    if (sent.bytes != ours.bytes)
        return differ(sent.bytes, " bytes; both sides must name one length");
    const bool are_known = sent.data_type != 0 && ours.data_type != 0;
    if (are_known && sent.data_type != ours.data_type)
        return differ(type_of(sent), ", this rank receives ", type_of(ours),
                      "; both sides must name one type");
    return Status::ok();
}

Status Mailbox::progress(LinkTable& links, bool& moved, EndedOperations& ended) {
    if (pending_ == 0) return Status::ok();
    const std::size_t before = ended.size();
    std::erase_if(receives_,
                  [&](const MessagePtr& receive) { return take_waiting(receive, ended); });
    deliver_to_self(ended);
    PCCL_TRY(progress_sends(links, moved, ended));
    for (Rank rank = 0; rank < static_cast<Rank>(sources_.size()); ++rank)
        if (rank != self_) PCCL_TRY(progress_source(rank, links, moved, ended));
    if (!moved) PCCL_TRY(expire(ended));
    moved |= ended.size() > before;
    return Status::ok();
}

Status Mailbox::progress_sends(LinkTable& links, bool& moved, EndedOperations& ended) {
    for (std::size_t peer = 0; peer < outgoing_.size(); ++peer) {
        auto& queue = outgoing_[peer];
        while (!queue.empty() && static_cast<Rank>(peer) != self_) {
            queue.front()->mark_started();
            PCCL_ASSIGN_OR_RETURN(const bool done, queue.front()->progress(links, moved));
            if (!done) break;
            end(queue.front(), Status::ok(), self_, ended);
            queue.pop_front();
        }
    }
    return Status::ok();
}

bool Mailbox::is_wanted(Rank rank) const {
    return std::any_of(receives_.begin(), receives_.end(), [rank](const MessagePtr& receive) {
        return receive->envelope().peer == rank || receive->envelope().peer == kAnySource;
    });
}

Status Mailbox::progress_source(Rank rank, LinkTable& links, bool& moved, EndedOperations& ended) {
    MessageSource& source = sources_[static_cast<std::size_t>(rank)];
    while (source.into || source.aside || is_wanted(rank)) {
        transport::RecvLink* link = links.receive_link({rank, 0});
        if (link == nullptr) return Status::ok();
        if (source.header_received < sizeof source.header) {
            const Status read = read_header(rank, source, *link, moved);
            // An any-source receive can still match others when one source has left.
            const bool others =
                source.header_received == 0 && receives_.front()->envelope().peer == kAnySource;
            if (!read.is_ok()) return others && sources_.size() > 2 ? Status::ok() : read;
            if (source.header_received < sizeof source.header) return Status::ok();
        }
        if (!source.into && !source.aside) match_front(rank, source, ended);
        if (!source.into && !source.aside) return Status::ok();
        PCCL_TRY(read_payload(rank, source, *link, moved, ended));
        if (source.header_received > 0) return Status::ok();  // the rest has not arrived
    }
    return Status::ok();
}

Status Mailbox::read_header(Rank rank, MessageSource& source, transport::RecvLink& link,
                            bool& moved) {
    const auto header = std::as_writable_bytes(std::span(&source.header, 1));
    PCCL_ASSIGN_OR_RETURN(const std::size_t bytes,
                          link.receive(kMessageChannel, header.subspan(source.header_received)));
    source.header_received += bytes;
    moved |= bytes > 0;
    if (source.header_received == sizeof source.header && source.header.magic != abi::kMessageMagic)
        return Status::peer_lost(rank, concat("rank ", rank, " sent bytes that are no message"));
    return Status::ok();
}

Mailbox::MessagePtr Mailbox::take_receive(Rank source, std::int32_t tag) {
    const auto found =
        std::find_if(receives_.begin(), receives_.end(),
                     [&](const MessagePtr& receive) { return receive->wants(source, tag); });
    if (found == receives_.end()) return nullptr;
    MessagePtr receive = *found;
    receives_.erase(found);
    return receive;
}

void Mailbox::match_front(Rank rank, MessageSource& source, EndedOperations& ended) {
    const std::size_t bytes = source.header.bytes;
    source.into = take_receive(rank, source.header.tag);
    const Status fits = source.into ? compare(*source.into, rank, source.header) : Status::ok();
    if (!fits.is_ok()) {
        end(source.into, fits, rank, ended);
        source.into.reset();
    }
    if (source.into) {
        source.into->mark_started();
        source.into->moved_ = sizeof source.header;
    } else if (bytes <= kMaxAside && source.waiting_bytes <= kMaxAside - bytes) {
        source.aside = std::make_unique<UnexpectedMessage>(
            UnexpectedMessage{source.header, std::vector<std::byte>(bytes)});
    }
}

Status Mailbox::read_payload(Rank rank, MessageSource& source, transport::RecvLink& link,
                             bool& moved, EndedOperations& ended) {
    std::byte* data = source.into ? source.into->envelope().data : source.aside->bytes.data();
    while (source.payload_received < source.header.bytes) {
        const std::size_t missing = source.header.bytes - source.payload_received;
        PCCL_ASSIGN_OR_RETURN(
            const std::size_t bytes,
            link.receive(kMessageChannel, {data + source.payload_received, missing}));
        if (bytes == 0) return Status::ok();
        source.payload_received += bytes;
        moved = true;
    }
    if (source.into) {
        end(source.into, Status::ok(), rank, ended);
    } else {
        source.waiting_bytes += source.aside->bytes.size();
        source.waiting.push_back(std::move(*source.aside));
    }
    source.reset_front();
    return Status::ok();
}

bool Mailbox::take_waiting(const MessagePtr& receive, EndedOperations& ended) {
    for (Rank rank = 0; rank < static_cast<Rank>(sources_.size()); ++rank) {
        MessageSource& source = sources_[static_cast<std::size_t>(rank)];
        const auto found = std::find_if(
            source.waiting.begin(), source.waiting.end(),
            [&](const UnexpectedMessage& m) { return receive->wants(rank, m.header.tag); });
        if (found == source.waiting.end()) continue;
        const Status fits = compare(*receive, rank, found->header);
        if (fits.is_ok() && !found->bytes.empty())
            std::memcpy(receive->envelope().data, found->bytes.data(), found->bytes.size());
        end(receive, fits, rank, ended);
        source.waiting_bytes -= found->bytes.size();
        source.waiting.erase(found);
        return true;
    }
    return false;
}

void Mailbox::deliver_to_self(EndedOperations& ended) {
    auto& queue = outgoing_[static_cast<std::size_t>(self_)];
    std::erase_if(queue, [&](const MessagePtr& sent) {
        const MessagePtr receive = take_receive(self_, sent->envelope().tag);
        if (receive == nullptr) return false;
        const auto& from = sent->envelope();
        const Status fits = compare(*receive, self_, header_of(from));
        if (fits.is_ok() && from.bytes > 0)
            std::memcpy(receive->envelope().data, from.data, from.bytes);
        end(receive, fits, self_, ended);
        end(sent, Status::ok(), self_, ended);
        return true;
    });
}

Status Mailbox::expire(EndedOperations& ended) {
    const auto timed_out = [](const MessageOperation& message) {
        return Status::timeout(
            concat(message.describe(), " timed out: the timeout passed while waiting for ",
                   to_string(message.awaited())),
            message.envelope().peer);
    };
    const auto has_expired = [&](const MessagePtr& message) {
        if (!is_past_deadline(*message)) return false;
        end(message, timed_out(*message), kNoRank, ended);
        return true;
    };
    std::erase_if(receives_, has_expired);
    for (const MessageSource& source : sources_)
        if (source.into && is_past_deadline(*source.into)) return timed_out(*source.into);
    for (auto& queue : outgoing_) {
        const bool is_under_way = !queue.empty() && queue.front()->is_under_way();
        if (is_under_way && is_past_deadline(*queue.front())) return timed_out(*queue.front());
        std::erase_if(queue, has_expired);
    }
    return Status::ok();
}

std::string Mailbox::describe_first() const {
    for (const MessageSource& source : sources_)
        if (source.into != nullptr) return source.into->describe();
    for (const auto& queue : outgoing_)
        if (!queue.empty()) return queue.front()->describe();
    return receives_.empty() ? std::string() : receives_.front()->describe();
}

AwaitedRanks Mailbox::awaited() const {
    AwaitedRanks ranks;
    for (std::size_t rank = 0; rank < sources_.size(); ++rank)
        if (sources_[rank].into != nullptr) ranks.push_back({static_cast<Rank>(rank)});
    for (const MessagePtr& receive : receives_)
        if (receive->envelope().peer != kAnySource) ranks.push_back({receive->envelope().peer});
    for (std::size_t rank = 0; rank < outgoing_.size(); ++rank)
        if (!outgoing_[rank].empty())
            ranks.push_back({static_cast<Rank>(rank), Awaited::Act::kReceive});
    return ranks;
}

void Mailbox::fail_all(const Status& reason, EndedOperations& ended) {
    for (MessageSource& source : sources_) {
        if (source.into) end(source.into, reason, kNoRank, ended);
        source.reset_front();
    }
    for (auto& queue : outgoing_) {
        for (const MessagePtr& message : queue) end(message, reason, kNoRank, ended);
        queue.clear();
    }
    for (const MessagePtr& message : receives_) end(message, reason, kNoRank, ended);
    receives_.clear();
}

}  // namespace pccl::comm
