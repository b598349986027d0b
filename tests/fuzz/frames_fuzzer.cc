// SPDX-License-Identifier: Apache-2.0

// Bytes that come over a connection: the store's frames, answers, close reasons, notices and
// headers.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "csrc/bootstrap/rendezvous/tcp_protocol.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/diagnosis/rank_status.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/tcp/wire.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl;  // NOLINT(google-build-using-namespace): one function

template <typename T>
T filled_from(std::string_view bytes) {
    T value{};
    std::memcpy(static_cast<void*>(&value), bytes.data(), std::min(bytes.size(), sizeof value));
    return value;
}

void read_store_frames(std::string_view bytes) {
    std::string buffer(bytes);
    for (;;) {
        const auto frame = bootstrap::take_frame(buffer);
        if (!frame.is_ok() || !frame->has_value()) return;
        const auto request = bootstrap::parse_request(**frame);
        if (request.is_ok()) {
            std::string again = bootstrap::frame_of(*request);
            require(bootstrap::take_frame(again)->value() == **frame);
        }
        static_cast<void>(bootstrap::parse_answer(**frame));
    }
}

void read_last_words(std::string_view bytes) {
    const transport::CloseContext close_context{.self = 0, .leaver = 1, .ranks = 4};
    const Status gone =
        transport::why_gone(filled_from<transport::CloseReason>(bytes), close_context);
    require(!gone.is_ok() && gone.peer() >= 1 && gone.peer() < 4);
    require(!transport::reason_of(filled_from<transport::Notice>(bytes)).is_ok());
    static_cast<void>(
        transport::tcp::SocketPurpose::decode(filled_from<transport::Purpose>(bytes)));
}

void read_headers(std::string_view bytes) {
    const auto theirs = filled_from<abi::CollectiveHeader>(bytes);
    abi::CollectiveHeader ours{};
    ours.magic = abi::kCollectiveMagic;
    static_cast<void>(pccl::describe(theirs));
    static_cast<void>(pccl::compare(ours, theirs, {.self = 0, .peer = 1}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    read_store_frames(bytes);
    read_last_words(bytes);
    read_headers(bytes);
    const auto rank_status = comm::RankStatus::parse(bytes);
    if (rank_status.is_ok()) require(comm::RankStatus::parse(rank_status->serialise()).is_ok());
    return 0;
}
