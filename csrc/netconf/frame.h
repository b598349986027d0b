// Where a NETCONF message begins and ends in a stream of bytes (RFC 6242, section 4).
//
// Hellos and base:1.0 end a message with ]]>]]>; base:1.1 sends it in chunks, "\n#<size>\n<bytes>",
// and ends it with "\n##\n". White space between two messages is skipped: many servers send a line
// feed behind ]]>]]>.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"

namespace pccl::netconf {

enum class Framing { kEndOfMessage, kChunked };

/// `message`, framed.
[[nodiscard]] PCCL_API std::string framed(std::string_view message, Framing framing);

/// Takes messages out of what a peer sends.
class PCCL_API FrameReader {
   public:
    /// Of a message; a larger one is an error, not a wait.
    static constexpr std::size_t kMostBytes = std::size_t{16} << 20U;

    explicit FrameReader(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

    void add(std::string_view bytes);
    /// Of the messages that follow.
    void set_framing(Framing framing) { framing_ = framing; }
    /// The next whole message, or nullopt until more has come. kPeerLost where the stream makes no
    /// sense, which nothing can mend.
    [[nodiscard]] Result<std::optional<std::string>> next();

   private:
    [[nodiscard]] Result<std::optional<std::string>> next_ended();
    [[nodiscard]] Result<std::optional<std::string>> next_chunked();
    /// Whether a chunk's header was there to be read.
    [[nodiscard]] Result<bool> read_header();
    [[nodiscard]] Result<std::size_t> size_in(std::string_view digits) const;
    void take_of_chunk();
    /// Moves to the first byte between messages that is no white space; false: there is none yet.
    /// `kept` bytes of white space before that one are left.
    bool skip_white_space(std::size_t kept);
    /// What was added and not taken.
    [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }

    const std::size_t most_bytes_;
    Framing framing_ = Framing::kEndOfMessage;
    std::string buffer_;
    std::size_t taken_ = 0;      // of buffer_, from its beginning
    std::size_t looked_at_ = 0;  // of rest(): no end of message starts before it
    std::string message_;        // chunks so far
    std::size_t chunk_left_ = 0;
    bool has_ended_ = false;
};

}  // namespace pccl::netconf
