// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/rendezvous/tcp_protocol.h"

#include "csrc/base/bytes.h"

namespace pccl::bootstrap {
namespace {

std::string framed(ByteWriter& payload) {
    ByteWriter frame;
    frame.text(payload.take());
    return frame.take();
}

}  // namespace

std::string frame_of(const StoreRequest& request) {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(request.verb));
    out.u32(request.id);
    out.text(request.key);
    out.text(request.value);
    out.i64(request.delta);
    return framed(out);
}

std::string frame_of(const StoreAnswer& answer) {
    ByteWriter out;
    out.u32(answer.id);
    out.u8(static_cast<std::uint8_t>(answer.code));
    out.text(answer.text);
    return framed(out);
}

Result<StoreRequest> parse_request(std::string_view payload) {
    ByteReader in(payload);
    StoreRequest request;
    std::uint8_t verb = 0;
    PCCL_TRY(in.u8(verb));
    if (verb >= kStoreVerbs) return Status::invalid_argument(concat("unknown verb ", int{verb}));
    request.verb = static_cast<StoreVerb>(verb);
    PCCL_TRY(in.u32(request.id));
    PCCL_TRY(in.text(request.key, kLongestKey));
    PCCL_TRY(in.text(request.value, kLongestValue));
    PCCL_TRY(in.i64(request.delta));
    PCCL_TRY(in.finish());
    return request;
}

Result<StoreAnswer> parse_answer(std::string_view payload) {
    ByteReader in(payload);
    StoreAnswer answer;
    std::uint8_t code = 0;
    PCCL_TRY(in.u32(answer.id));
    PCCL_TRY(in.u8(code));
    if (code > static_cast<std::uint8_t>(StatusCode::kInternal))
        return Status::invalid_argument(concat("unknown code ", int{code}));
    answer.code = static_cast<StatusCode>(code);
    PCCL_TRY(in.text(answer.text, kLongestValue));
    PCCL_TRY(in.finish());
    return answer;
}

Result<std::optional<std::string>> take_frame(std::string& buffer) {
    ByteReader in(buffer);
    std::uint32_t length = 0;
    if (!in.u32(length).is_ok()) return std::optional<std::string>();
    if (length > kLongestFrame)
        return Status::invalid_argument(concat("a frame of ", length, " bytes"));
    if (in.remaining() < length) return std::optional<std::string>();
    std::string payload = buffer.substr(in.offset(), length);
    buffer.erase(0, in.offset() + length);
    return std::optional(std::move(payload));
}

}  // namespace pccl::bootstrap
