// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/notification_frames.h"

#include <cstring>
#include <type_traits>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {
namespace {

using Kind = RmaNotificationFrame::Kind;
using Word = std::uint32_t;

constexpr int kKindShift = 30;
constexpr Word kLengthMask = (Word{1} << kKindShift) - 1;
static_assert(RmaLink::kMostNotification <= kLengthMask);
static_assert(sizeof(RmaImmediate) == 12 && std::is_trivially_copyable_v<RmaImmediate>);

template <typename T>
void append_value(std::vector<std::byte>& frames, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    frames.insert(frames.end(), bytes.begin(), bytes.end());
}

template <typename T>
T value_at(std::span<const std::byte> frame, std::size_t at) {
    T value{};
    std::memcpy(&value, frame.data() + at, sizeof value);
    return value;
}

Word first_word(Kind kind, std::size_t length) {
    return static_cast<Word>(kind) << kKindShift | static_cast<Word>(length);
}

}  // namespace

void append_notification(std::vector<std::byte>& frames, std::span<const std::byte> notification,
                         std::span<const RmaImmediate> after) {
    append_value(frames,
                 first_word(after.empty() ? Kind::kPlain : Kind::kAnnounced, notification.size()));
    if (!after.empty()) append_value(frames, static_cast<Word>(after.size()));
    for (const RmaImmediate& immediate : after) append_value(frames, immediate);
    frames.insert(frames.end(), notification.begin(), notification.end());
}

void append_verdict(std::vector<std::byte>& frames, Kind kind, std::uint64_t number) {
    append_value(frames, first_word(kind, 0));
    append_value(frames, number);
}

Result<std::size_t> RmaNotificationReader::length() const {
    if (frame_.size() < sizeof(Word)) return sizeof(Word);
    const Word word = value_at<Word>(frame_, 0);
    const auto kind = static_cast<Kind>(word >> kKindShift);
    const std::size_t length = word & kLengthMask;
    const bool is_verdict = kind == Kind::kConfirm || kind == Kind::kDrop;
    if (is_verdict ? length > 0 : length == 0 || length > RmaLink::kMostNotification)
        return Status::peer_lost(kNoRank,
                                 concat("the peer sent a notification of ", length, " bytes"));
    if (is_verdict) return sizeof(Word) + sizeof(std::uint64_t);
    if (kind == Kind::kPlain) return sizeof(Word) + length;
    if (frame_.size() < 2 * sizeof(Word)) return 2 * sizeof(Word);
    const Word count = value_at<Word>(frame_, sizeof(Word));
    if (count == 0 || count > RmaImmediate::kMostTogether)
        return Status::peer_lost(
            kNoRank, concat("the peer sent a notification behind ", count, " immediates"));
    return 2 * sizeof(Word) + count * sizeof(RmaImmediate) + length;
}

RmaNotificationFrame RmaNotificationReader::parse() const {
    RmaNotificationFrame frame;
    const Word word = value_at<Word>(frame_, 0);
    frame.kind = static_cast<Kind>(word >> kKindShift);
    if (frame.kind == Kind::kConfirm || frame.kind == Kind::kDrop) {
        frame.number = value_at<std::uint64_t>(frame_, sizeof word);
        return frame;
    }
    if (frame.kind == Kind::kAnnounced) frame.after.resize(value_at<Word>(frame_, sizeof word));
    if (!frame.after.empty())
        std::memcpy(frame.after.data(), frame_.data() + 2 * sizeof word,
                    std::span(frame.after).size_bytes());
    const std::size_t length = word & kLengthMask;
    frame.notification.assign(frame_.end() - static_cast<std::ptrdiff_t>(length), frame_.end());
    return frame;
}

Result<std::optional<RmaNotificationFrame>> RmaNotificationReader::next(RecvLink& stream) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const std::size_t whole, length());
        const std::size_t here = frame_.size();
        if (here == whole) break;
        frame_.resize(whole);
        const auto got = stream.receive(kRmaChannel, std::span(frame_).subspan(here));
        frame_.resize(here + (got.is_ok() ? *got : 0));
        PCCL_TRY(got.status());
        if (*got == 0) return std::optional<RmaNotificationFrame>();
    }
    RmaNotificationFrame frame = parse();
    frame_.clear();
    return std::optional(std::move(frame));
}

}  // namespace pccl::transport
