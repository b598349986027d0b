// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/answer.h"

#include <algorithm>
#include <array>
#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kLongestReason = 1 * kKiB;
enum class AnswerKind : std::uint8_t { kDescription, kRefusal };

}  // namespace

std::string answer_message(const Result<std::string>& description) {
    ByteWriter body;
    body.u8(static_cast<std::uint8_t>(description.is_ok() ? AnswerKind::kDescription
                                                          : AnswerKind::kRefusal));
    if (description.is_ok())
        body.text(*description);
    else
        body.status(description.status(), kLongestReason);
    ByteWriter message;
    message.text(body.take());
    return message.take();
}

Result<bool> AnswerReader::receive(int socket) {
    const std::size_t longest = longest_ + kLongestReason;
    std::size_t wanted = kLengthBytes;
    while (true) {
        if (received_.size() >= kLengthBytes) {
            std::uint32_t length = 0;
            PCCL_TRY(ByteReader(received_).u32(length));
            if (length > longest)
                return Status::invalid_argument(
                    concat(subject_, " described by ", length, " bytes; at most ", longest));
            wanted = kLengthBytes + length;
            if (received_.size() == wanted) return true;
        }
        std::array<std::byte, 4 * kKiB> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
        const std::size_t missing = std::min(wanted - received_.size(), piece.size());
        PCCL_ASSIGN_OR_RETURN(const std::size_t count,
                              sys::receive_some(socket, std::span(piece).first(missing)));
        if (count == 0) return false;
        received_.append(reinterpret_cast<const char*>(piece.data()), count);
    }
}

Result<std::optional<std::string>> AnswerReader::advance(int socket) {
    PCCL_ASSIGN_OR_RETURN(const bool is_whole, receive(socket));
    if (!is_whole) return std::optional<std::string>();
    ByteReader in(std::string_view(received_).substr(kLengthBytes));
    std::uint8_t kind = 0;
    PCCL_TRY(in.u8(kind));
    if (kind == static_cast<std::uint8_t>(AnswerKind::kRefusal)) {
        Status refusal;
        PCCL_TRY(in.status(refusal, kLongestReason));
        return refusal.is_ok() ? Status::invalid_argument("a refusal without a reason") : refusal;
    }
    std::string description;
    PCCL_TRY(in.text(description, longest_));
    PCCL_TRY(in.finish());
    return std::optional(std::move(description));
}

}  // namespace pccl::transport
