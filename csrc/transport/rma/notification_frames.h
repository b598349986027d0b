// SPDX-License-Identifier: Apache-2.0

// Frames of notifications on a stream that carries nothing else. The upper two bits of the first
// word of 4 bytes are the kind, the rest is the length of the notification:
//
//   kPlain      the notification, which is due
//   kAnnounced  a count of 4 bytes, so many RmaImmediates, the notification: it is due when these
//               have arrived
//   kConfirm    a number of 8 bytes: this announced notification is due, as are all before it
//   kDrop       a number of 8 bytes: this announced notification is dropped
//
// Notifications are numbered from 0 in the order of their frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/rma/immediates.h"

namespace pccl::transport {

struct RmaNotificationFrame {
    enum class Kind : std::uint8_t { kPlain, kAnnounced, kConfirm, kDrop };

    Kind kind = Kind::kPlain;
    std::vector<RmaImmediate> after;  // of kAnnounced: one at least
    std::vector<std::byte> notification;
    std::uint64_t number = 0;  // of kConfirm and kDrop
};

/// Appends the frame of a notification: kAnnounced if it is due after immediates.
PCCL_API void append_notification(std::vector<std::byte>& frames,
                                  std::span<const std::byte> notification,
                                  std::span<const RmaImmediate> after);
/// Appends a frame kConfirm or kDrop.
PCCL_API void append_verdict(std::vector<std::byte>& frames, RmaNotificationFrame::Kind kind,
                             std::uint64_t number);

/// Reader of frames of any origin, which may arrive in parts.
class PCCL_API RmaNotificationReader {
   public:
    /// Returns the next whole frame, if it has arrived. kPeerLost for impossible lengths.
    Result<std::optional<RmaNotificationFrame>> next(RecvLink& stream);

   private:
    /// Returns the bytes of the frame, as far as those that have arrived show: the next part.
    [[nodiscard]] Result<std::size_t> length() const;
    [[nodiscard]] RmaNotificationFrame parse() const;

    std::vector<std::byte> frame_;  // bytes that have arrived
};

}  // namespace pccl::transport
