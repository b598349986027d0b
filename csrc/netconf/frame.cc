// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/frame.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/netconf/message.h"

namespace pccl::netconf {
namespace {

constexpr std::string_view kEnd = "]]>]]>";
constexpr std::string_view kHeaderStart = "\n#";
constexpr std::string_view kEndOfChunks = "#\n";  // follows kHeaderStart
constexpr std::string_view kWhiteSpace = " \t\r\n";
constexpr std::size_t kMostDigits = 10;  // chunk-size is at most 4294967295

}  // namespace

std::string framed(std::string_view message, Framing framing) {
    if (framing == Framing::kEndOfMessage) return concat(message, kEnd);
    return concat(kHeaderStart, message.size(), "\n", message, kHeaderStart, kEndOfChunks);
}

void FrameReader::add(std::string_view bytes) {
    // Not at every message or chunk: a peer may send a large number of small ones.
    buffer_.erase(0, taken_);
    taken_ = 0;
    buffer_ += bytes;
}

Result<std::optional<std::string>> FrameReader::next() {
    return framing_ == Framing::kEndOfMessage ? next_ended() : next_chunked();
}

bool FrameReader::skip_white_space(std::size_t kept) {
    const std::string_view rest = this->rest();
    const std::size_t blanks = rest.find_first_not_of(kWhiteSpace);
    taken_ += std::min(blanks, rest.size()) - std::min({blanks, rest.size(), kept});
    return blanks != std::string_view::npos;
}

Result<std::optional<std::string>> FrameReader::next_ended() {
    if (looked_at_ == 0 && !skip_white_space(0)) return std::optional<std::string>{};
    const std::string_view rest = this->rest();
    const std::size_t end = rest.find(kEnd, looked_at_);
    if (std::min(end, rest.size()) > most_bytes_)
        return protocol_error(concat("a message is longer than ", most_bytes_, " bytes"));
    if (end == std::string_view::npos) {
        looked_at_ = rest.size() - std::min(rest.size(), kEnd.size() - 1);
        return std::optional<std::string>{};
    }
    taken_ += end + kEnd.size();
    looked_at_ = 0;
    return std::optional(std::string(rest.substr(0, end)));
}

Result<std::optional<std::string>> FrameReader::next_chunked() {
    for (;;) {
        take_of_chunk();
        if (chunk_left_ > 0) return std::optional<std::string>{};
        PCCL_ASSIGN_OR_RETURN(const bool has_header, read_header());
        if (!has_header) return std::optional<std::string>{};
        if (has_ended_) {
            has_ended_ = false;
            return std::optional(std::exchange(message_, {}));
        }
    }
}

Result<bool> FrameReader::read_header() {
    // A message begins with its first chunk, whose line feed is the last byte of white space.
    if (message_.empty() && !skip_white_space(1)) return false;
    const std::string_view rest = this->rest();
    const std::size_t compared = std::min(rest.size(), kHeaderStart.size());
    if (rest.substr(0, compared) != kHeaderStart.substr(0, compared))
        return protocol_error("a chunk does not begin with a line feed and #");
    if (rest.size() == compared) return false;
    const std::size_t end = rest.find('\n', compared);
    const std::size_t digits = std::min(end, rest.size()) - compared;
    if (digits > kMostDigits) return protocol_error("the size of a chunk has more than 10 digits");
    if (end == std::string_view::npos) return false;
    const std::string_view word = rest.substr(compared, digits);
    taken_ += end + 1;
    has_ended_ = word == kEndOfChunks.substr(0, 1);
    if (has_ended_ && message_.empty()) return protocol_error("a message has no chunk");
    if (has_ended_) return true;
    PCCL_ASSIGN_OR_RETURN(chunk_left_, size_in(word));
    return true;
}

Result<std::size_t> FrameReader::size_in(std::string_view digits) const {
    const auto size = number_in<std::uint64_t>(digits, 1, UINT32_MAX);
    if (!size || digits.front() == '0')
        return protocol_error("a chunk has no size from 1 to 4294967295");
    if (*size > most_bytes_ - message_.size())
        return protocol_error(concat("a message is longer than ", most_bytes_, " bytes"));
    return static_cast<std::size_t>(*size);
}

void FrameReader::take_of_chunk() {
    const std::string_view chunk = rest().substr(0, chunk_left_);
    message_ += chunk;
    taken_ += chunk.size();
    chunk_left_ -= chunk.size();
}

}  // namespace pccl::netconf
