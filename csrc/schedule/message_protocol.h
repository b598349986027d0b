// SPDX-License-Identifier: Apache-2.0

// Message protocol between GPUs that a schedule requests. CPUs have one protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/export.h>

namespace pccl::schedule {

/// Message protocols. kLL: 8 bytes with an arrival flag (NCCL's LL). kLL128: 120 bytes with their
/// flag (LL128). kDirect: slots with separate flags (Simple).
enum class MessageProtocol : std::uint8_t { kLL, kLL128, kDirect };

/// Returns "ll", "ll128" or "direct".
[[nodiscard]] PCCL_API std::string_view to_string(MessageProtocol protocol);
/// Returns "words", "lines" or "direct": the names in the bytes of capsules.
[[nodiscard]] PCCL_API std::string_view file_name_of(MessageProtocol protocol);
/// Returns "ll, ll128, direct", for error messages.
[[nodiscard]] PCCL_API std::string names_of_message_protocols();
/// Returns the protocol with this name, either as users write it or as in capsules.
[[nodiscard]] PCCL_API std::optional<MessageProtocol> message_protocol_named(std::string_view name);

}  // namespace pccl::schedule
