// How messages of a schedule travel between GPUs, as whoever wrote it would have it. CPUs have one
// way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/export.h"

namespace pccl::schedule {

/// kLL: 8 bytes with their arrival flag, NCCL's LL. kLL128: 120 bytes with theirs, LL128.
/// kDirect: slots with flags beside them, Simple.
enum class MessageProtocol : std::uint8_t { kLL, kLL128, kDirect };

/// "ll", "ll128" or "direct".
[[nodiscard]] PCCL_API std::string_view to_string(MessageProtocol protocol);
/// Returns "words", "lines" or "direct": the names in the bytes of capsules.
[[nodiscard]] PCCL_API std::string_view file_name_of(MessageProtocol protocol);
/// "ll, ll128, direct": all of them, for messages.
[[nodiscard]] PCCL_API std::string names_of_message_protocols();
/// Returns the one that has `name`, to users or in capsules.
[[nodiscard]] PCCL_API std::optional<MessageProtocol> message_protocol_named(std::string_view name);

}  // namespace pccl::schedule
