// SPDX-License-Identifier: Apache-2.0

// What sessions read of others: connection info, handshakes and descriptors. Checksums would keep
// most inputs out, so bytes are tried with one made for them, too.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/bytes.h"
#include "csrc/base/text/digest.h"
#include "csrc/p2p/connection/connection_info.h"
#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/connection/handshake.h"
#include "csrc/p2p/transfers/registered_memory.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::p2p;  // NOLINT(google-build-using-namespace): one function

std::string with_checksum(std::string_view bytes) {
    pccl::Digest digest;
    digest.add(bytes);
    pccl::ByteWriter out;
    out.u32(digest.checksum());
    return std::string(bytes) + out.take();
}

void read_info(std::string_view bytes) {
    const auto info = ConnectionInfo::deserialise(bytes);
    if (info.is_ok()) require(info->serialise() == bytes);
}

void read_handshake(std::string_view bytes) {
    const auto handshake = parse_handshake(bytes);
    if (handshake.is_ok()) require(frame_of(*handshake).substr(sizeof(std::uint32_t)) == bytes);
}

void read_control_message(std::string_view bytes) {
    const auto message = parse_control_message(std::as_bytes(std::span(bytes)));
    if (!message.is_ok()) return;
    const auto sent = serialise(*message);
    const auto again = parse_control_message(sent);
    require(again.is_ok() && serialise(*again) == sent);
}

void read_descriptor(std::string_view bytes) {
    const auto memory = import_descriptor({.name = "peer", .incarnation = 0}, bytes);
    if (memory.is_ok()) static_cast<void>(memory->bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const std::string& each : {std::string(bytes), with_checksum(bytes)}) {
        read_info(each);
        read_descriptor(each);
    }
    read_handshake(bytes);
    read_control_message(bytes);
    return 0;
}
