// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/recv_path.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "csrc/sys/socket/socket.h"

namespace pccl::nccl {

Result<bool> RecvPath::find_piece(int socket, std::size_t piece_bytes) {
    if (has_piece_) return true;
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ - begin_ < sizeof header_) {
        std::memmove(held_.data(), held_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        PCCL_ASSIGN_OR_RETURN(const std::size_t got,
                              sys::receive_some(socket, std::span(held_).subspan(end_)));
        end_ += got;
    }
    if (end_ - begin_ < sizeof header_) return false;
    std::memcpy(&header_, held_.data() + begin_, sizeof header_);
    if (!header_.is_valid(piece_bytes))
        return Status::invalid_argument(
            "the connection carries bytes that are no piece of a message");
    begin_ += sizeof header_;
    has_piece_ = true;
    length_ = header_.length(piece_bytes);
    taken_ = 0;
    return true;
}

std::size_t RecvPath::take_held(std::span<std::byte> into) {
    const std::size_t count = std::min(into.size(), end_ - begin_);
    if (count > 0) std::memcpy(into.data(), held_.data() + begin_, count);
    begin_ += count;
    return count;
}

Result<std::size_t> RecvPath::read(int socket, std::span<std::byte> into) {
    std::size_t count = take_held(into);
    if (count < into.size()) {
        const auto got = sys::receive_some(socket, into.subspan(count));
        // Bytes that came before a fault count; the next read finds it again.
        if (!got.is_ok() && count == 0) return got.status();
        if (got.is_ok()) count += *got;
    }
    taken_ += count;
    return count;
}

Result<std::size_t> RecvPath::skip(int socket) {
    constexpr std::size_t kScratch = 64 * kKiB;
    std::vector<std::byte> scratch(std::min(left(), kScratch));
    return read(socket, scratch);
}

}  // namespace pccl::nccl
