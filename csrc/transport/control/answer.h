// SPDX-License-Identifier: Apache-2.0

// A description that one end of a link sends the other over the socket of their handshake, or the
// reason why there is none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <pccl/status.h>

namespace pccl::transport {

/// Serialises a description, or a refusal, with its length.
[[nodiscard]] std::string answer_message(const Result<std::string>& description);

/// Receiver of one answer on a non-blocking socket.
class AnswerReader {
   public:
    /// `subject` is a literal for messages, "an RDMA link"; a description has at most `longest`
    /// bytes.
    AnswerReader(const char* subject, std::size_t longest) : subject_(subject), longest_(longest) {}

    /// Returns the description once the answer is whole. The peer's refusal, or malformed bytes,
    /// are the error. Does not block.
    Result<std::optional<std::string>> advance(int socket);

   private:
    Result<bool> receive(int socket);

    const char* subject_;
    std::size_t longest_;
    std::string received_;
};

}  // namespace pccl::transport
