// What TcpStore and its server say to each other: a handshake (transport/control/handshake.h), then
// frames of a u32 length and that many bytes. A client has one request under way; an answer carries
// the request's id, so that one that comes after the client gave up is recognised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/bootstrap/rendezvous/entry.h"
#include "csrc/transport/transport.h"

namespace pccl::bootstrap {

/// The group whose secret the handshake proves. No other has its name, for theirs are random.
inline constexpr transport::GroupId kStoreGroup{'p', 'c', 'c', 'l', ' ', 's', 't', 'o', 'r', 'e'};
/// The secret of a store for everybody. Its handshake proves only that both sides speak PCCL.
inline constexpr transport::Secret kNoStoreSecret{};
inline constexpr std::size_t kLongestFrame = kLongestKey + kLongestValue + 64;
/// For the rest of a frame, and for an answer that needs no waiting.
inline constexpr Duration kStoreTimeout = std::chrono::seconds(60);

enum class StoreVerb : std::uint8_t {
    kSet,
    kLookUp,  // get without waiting: kTimeout when there is nothing
    kGet,     // answered when the key exists
    kAdd,
    kRemove,
    kCancel,  // of a kGet that the client no longer waits for; has no answer
};
inline constexpr int kStoreVerbs = 6;

struct StoreRequest {
    StoreVerb verb = StoreVerb::kSet;
    std::uint32_t id = 0;
    std::string key;
    std::string value;       // kSet
    std::int64_t delta = 0;  // kAdd
};

struct StoreAnswer {
    std::uint32_t id = 0;
    StatusCode code = StatusCode::kOk;
    std::string text;  // the value, the counter, or the message
};

[[nodiscard]] std::string frame_of(const StoreRequest& request);
[[nodiscard]] std::string frame_of(const StoreAnswer& answer);

/// kInvalidArgument for anything that frame_of() does not write.
[[nodiscard]] Result<StoreRequest> parse_request(std::string_view payload);
[[nodiscard]] Result<StoreAnswer> parse_answer(std::string_view payload);

/// Cuts the first frame off `buffer` and returns its payload; nullopt until it is whole.
/// kInvalidArgument when its length is above kLongestFrame.
[[nodiscard]] Result<std::optional<std::string>> take_frame(std::string& buffer);

}  // namespace pccl::bootstrap
