// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/failover.h"

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

Status read_piece_count(ByteReader& in, std::uint16_t& count) {
    PCCL_TRY(in.u16(count));
    if (count <= FailoverRequest::kMostPieces) return Status::ok();
    return Status::invalid_argument(
        concat(count, " pieces of a failed lane; at most ", FailoverRequest::kMostPieces));
}

}  // namespace

std::string FailoverRequest::serialise() const {
    ByteWriter out;
    out.u32(sequence);
    out.u8(lane);
    out.u16(static_cast<std::uint16_t>(pieces.size()));
    for (const PostedPiece& piece : pieces) {
        out.u8(static_cast<std::uint8_t>(piece.channel));
        out.u64(piece.begin);
        out.u32(piece.bytes);
    }
    return out.take();
}

Result<FailoverRequest> FailoverRequest::parse(std::string_view bytes) {
    ByteReader in(bytes);
    FailoverRequest request;
    std::uint16_t count = 0;
    PCCL_TRY(in.u32(request.sequence));
    PCCL_TRY(in.u8(request.lane));
    PCCL_TRY(read_piece_count(in, count));
    for (std::uint16_t i = 0; i < count; ++i) {
        std::uint8_t channel = 0;
        PostedPiece piece;
        PCCL_TRY(in.u8(channel));
        PCCL_TRY(in.u64(piece.begin));
        PCCL_TRY(in.u32(piece.bytes));
        if (channel >= kChannels || piece.end() < piece.begin)
            return Status::invalid_argument("a piece of a failed lane that cannot be");
        piece.channel = channel;
        request.pieces.push_back(piece);
    }
    return request;
}

std::string FailoverAnswer::serialise() const {
    ByteWriter out;
    out.u32(sequence);
    out.u16(static_cast<std::uint16_t>(has_arrived.size()));
    for (const bool each : has_arrived) out.u8(each ? 1 : 0);
    return out.take();
}

Result<FailoverAnswer> FailoverAnswer::parse(std::string_view bytes) {
    ByteReader in(bytes);
    FailoverAnswer answer;
    std::uint16_t count = 0;
    PCCL_TRY(in.u32(answer.sequence));
    PCCL_TRY(read_piece_count(in, count));
    for (std::uint16_t i = 0; i < count; ++i) {
        std::uint8_t each = 0;
        PCCL_TRY(in.u8(each));
        answer.has_arrived.push_back(each == 1);
    }
    return answer;
}

}  // namespace pccl::transport::verbs
