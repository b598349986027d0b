// SPDX-License-Identifier: Apache-2.0

// Protocol of TcpStore and its server: a handshake (transport/control/handshake.h), then frames of
// a u32 length and that many bytes. A client has one request in flight. An answer contains the
// request's id, so that the client recognises late answers to abandoned requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/bootstrap/rendezvous/entry.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// Group whose secret the handshake proves. No other group has this id, since those are random.
inline constexpr transport::GroupId kStoreGroup{'p', 'c', 'c', 'l', ' ', 's', 't', 'o', 'r', 'e'};
/// Secret of a public store. Its handshake only proves that both sides use PCCL.
inline constexpr transport::Secret kNoStoreSecret{};
inline constexpr std::size_t kLongestFrame = kLongestKey + kLongestValue + 64;
/// Limit for the rest of a frame, and for an answer without waiting.
inline constexpr Duration kStoreTimeout = std::chrono::seconds(60);

enum class StoreVerb : std::uint8_t {
    kSet,
    kLookUp,  // get without waiting: kTimeout when there is none
    kGet,     // answered when the key exists
    kAdd,
    kRemove,
    kCancel,  // cancels a kGet; has no answer
};
inline constexpr int kStoreVerbs = 6;

struct StoreRequest {
    StoreVerb verb = StoreVerb::kSet;
    std::uint32_t id = 0;
    std::string key;
    std::string value;       // of kSet
    std::int64_t delta = 0;  // of kAdd
};

struct StoreAnswer {
    std::uint32_t id = 0;
    StatusCode code = StatusCode::kOk;
    std::string text;  // the value, the counter, or the message
};

[[nodiscard]] std::string frame_of(const StoreRequest& request);
[[nodiscard]] std::string frame_of(const StoreAnswer& answer);

/// Returns kInvalidArgument for bytes that frame_of() cannot produce.
[[nodiscard]] Result<StoreRequest> parse_request(std::string_view payload);
[[nodiscard]] Result<StoreAnswer> parse_answer(std::string_view payload);

/// Removes the first frame from `buffer` and returns its payload; nullopt until it is complete.
/// Returns kInvalidArgument when its length exceeds kLongestFrame.
[[nodiscard]] Result<std::optional<std::string>> take_frame(std::string& buffer);

}  // namespace pccl::bootstrap
