#include "csrc/p2p/peer_word.h"

#include <string>
#include <string_view>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"
#include "csrc/p2p/session_id.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {
namespace {

enum class WordKind : std::uint8_t {
    kNotified,
    kWanted,
    kSent,
    kFailed,
    kWithdrawn,
    kAsked,
    kFound,
    kNotFound,
    kHailed,
};

constexpr std::size_t kLongestReason = 1024;
constexpr std::size_t kLongestDescriptor = 256;
static_assert(sizeof(WordKind) + kMostNotification <= transport::RmaLink::kMostNotification);

void write(ByteWriter& out, const Notified& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kNotified));
    out.raw(word.bytes);
}

void write(ByteWriter& out, const Wanted& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kWanted));
    out.u64(word.number);
    out.u64(word.tag);
    out.u64(word.offset);
    out.u64(word.bytes);
    out.text(transport::serialise(word.memory));
}

void write(ByteWriter& out, const Sent& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kSent));
    out.u64(word.number);
    out.u64(word.bytes);
}

void write(ByteWriter& out, const Failed& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kFailed));
    out.u64(word.number);
    out.status(word.why, kLongestReason);
}

void write(ByteWriter& out, const Withdrawn& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kWithdrawn));
    out.u64(word.number);
}

void write(ByteWriter& out, const Asked& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kAsked));
    out.u64(word.number);
    out.text(word.name);
}

void write(ByteWriter& out, const Hailed& word) {
    out.u8(static_cast<std::uint8_t>(WordKind::kHailed));
    out.u64(word.number);
}

void write(ByteWriter& out, const Answered& word) {
    const auto kind = word.memory ? WordKind::kFound : WordKind::kNotFound;
    out.u8(static_cast<std::uint8_t>(kind));
    out.u64(word.number);
    out.text(word.memory ? transport::serialise(*word.memory) : word.why.substr(0, kLongestReason));
}

Result<PeerWord> read_notified(std::span<const std::byte> bytes) {
    PCCL_TRY(check_notification(bytes));
    return PeerWord(Notified{{bytes.begin(), bytes.end()}});
}

Result<PeerWord> read_wanted(ByteReader& in) {
    Wanted word;
    std::string memory;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.u64(word.tag));
    PCCL_TRY(in.u64(word.offset));
    PCCL_TRY(in.u64(word.bytes));
    PCCL_TRY(in.text(memory, kLongestDescriptor));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(word.memory, transport::parse_memory_descriptor(memory));
    return PeerWord(word);
}

Result<PeerWord> read_sent(ByteReader& in) {
    Sent word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.u64(word.bytes));
    PCCL_TRY(in.finish());
    return PeerWord(word);
}

Result<PeerWord> read_failed(ByteReader& in) {
    Failed word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.status(word.why, kLongestReason));
    PCCL_TRY(in.finish());
    if (word.why.is_ok()) return Status::invalid_argument("a failure that is none");
    return PeerWord(std::move(word));
}

Result<PeerWord> read_withdrawn(ByteReader& in) {
    Withdrawn word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.finish());
    return PeerWord(word);
}

Result<PeerWord> read_asked(ByteReader& in) {
    Asked word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.text(word.name, SessionId::kLongestName));
    PCCL_TRY(in.finish());
    PCCL_TRY(check_name(word.name));
    return PeerWord(std::move(word));
}

Result<PeerWord> read_hailed(ByteReader& in) {
    Hailed word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.finish());
    return PeerWord(word);
}

Result<PeerWord> read_found(ByteReader& in) {
    Answered word;
    std::string memory;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.text(memory, kLongestDescriptor));
    PCCL_TRY(in.finish());
    PCCL_ASSIGN_OR_RETURN(word.memory, transport::parse_memory_descriptor(memory));
    return PeerWord(std::move(word));
}

Result<PeerWord> read_not_found(ByteReader& in) {
    Answered word;
    PCCL_TRY(in.u64(word.number));
    PCCL_TRY(in.text(word.why, kLongestReason));
    PCCL_TRY(in.finish());
    return PeerWord(std::move(word));
}

}  // namespace

std::vector<std::byte> serialise(const PeerWord& word) {
    ByteWriter out;
    std::visit([&out](const auto& kind) { write(out, kind); }, word);
    const std::string text = out.take();
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Result<PeerWord> parse_peer_word(std::span<const std::byte> bytes) {
    ByteReader in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    std::uint8_t kind = 0;
    PCCL_TRY(in.u8(kind));
    switch (static_cast<WordKind>(kind)) {
        case WordKind::kNotified:
            return read_notified(bytes.subspan(in.offset()));
        case WordKind::kWanted:
            return read_wanted(in);
        case WordKind::kSent:
            return read_sent(in);
        case WordKind::kFailed:
            return read_failed(in);
        case WordKind::kWithdrawn:
            return read_withdrawn(in);
        case WordKind::kAsked:
            return read_asked(in);
        case WordKind::kFound:
            return read_found(in);
        case WordKind::kNotFound:
            return read_not_found(in);
        case WordKind::kHailed:
            return read_hailed(in);
    }
    return Status::invalid_argument(concat("a word of unknown kind ", int{kind}));
}

Status check_notification(std::span<const std::byte> bytes) {
    if (!bytes.empty() && bytes.size() <= kMostNotification) return Status::ok();
    return Status::invalid_argument(concat("a notification of ", bytes.size(), " bytes: 1 to ",
                                           kMostNotification, " are possible"));
}

Result<std::vector<std::byte>> word_of(std::span<const std::byte> notification) {
    if (notification.empty()) return std::vector<std::byte>();
    PCCL_TRY(check_notification(notification));
    return serialise(Notified{{notification.begin(), notification.end()}});
}

}  // namespace pccl::p2p
