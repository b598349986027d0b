// SPDX-License-Identifier: Apache-2.0

// Framing of NETCONF messages in a byte stream (RFC 6242, section 4).
//
// Hellos and base:1.0 end a message with ]]>]]>; base:1.1 sends it in chunks, "\n#<size>\n<bytes>",
// and ends it with "\n##\n". White space between two messages is skipped: many servers send a line
// feed after ]]>]]>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl::netconf {

enum class Framing { kEndOfMessage, kChunked };

/// Returns `message` with its framing.
[[nodiscard]] PCCL_API std::string framed(std::string_view message, Framing framing);

/// Reader of a peer's messages.
class PCCL_API FrameReader {
   public:
    /// Limit of a message in bytes; a larger one is an error, not a wait.
    static constexpr std::size_t kMostBytes = std::size_t{16} << 20U;

    explicit FrameReader(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

    void add(std::string_view bytes);
    /// Sets the framing of the messages that follow.
    void set_framing(Framing framing) { framing_ = framing; }
    /// Returns the next whole message, or nullopt until it is complete. kPeerLost where the stream
    /// is malformed, which is permanent.
    [[nodiscard]] Result<std::optional<std::string>> next();

   private:
    [[nodiscard]] Result<std::optional<std::string>> next_ended();
    [[nodiscard]] Result<std::optional<std::string>> next_chunked();
    /// Reads a chunk's header; returns false if it is incomplete.
    [[nodiscard]] Result<bool> read_header();
    [[nodiscard]] Result<std::size_t> size_in(std::string_view digits) const;
    void take_of_chunk();
    /// Skips to the first byte between messages that is not white space, except for `kept` bytes of
    /// white space before it. Returns false if there is none yet.
    bool skip_white_space(std::size_t kept);
    /// Returns the bytes that were added and not taken.
    [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }

    const std::size_t most_bytes_;
    Framing framing_ = Framing::kEndOfMessage;
    std::string buffer_;
    std::size_t taken_ = 0;      // bytes taken from the front of buffer_
    std::size_t looked_at_ = 0;  // bytes of rest() in which no end of message starts
    std::string message_;        // chunks so far
    std::size_t chunk_left_ = 0;
    bool has_ended_ = false;
};

}  // namespace pccl::netconf
