// What sessions read of others: connection info, greetings and descriptors. Checksums would keep
// most inputs out, so bytes are tried with one made for them, too.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/bytes.h"
#include "csrc/base/digest.h"
#include "csrc/p2p/connection_info.h"
#include "csrc/p2p/greeting.h"
#include "csrc/p2p/memory.h"
#include "csrc/p2p/peer_word.h"
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

void read_greeting(std::string_view bytes) {
    const auto greeting = parse_greeting(bytes);
    if (greeting.is_ok()) require(frame_of(*greeting).substr(sizeof(std::uint32_t)) == bytes);
}

void read_word(std::string_view bytes) {
    const auto word = parse_peer_word(std::as_bytes(std::span(bytes)));
    if (!word.is_ok()) return;
    const auto said = serialise(*word);
    const auto again = parse_peer_word(said);
    require(again.is_ok() && serialise(*again) == said);
}

void read_descriptor(std::string_view bytes) {
    const auto memory = import_descriptor({.name = "peer", .incarnation = 0}, bytes);
    if (memory.is_ok()) static_cast<void>(memory->is_mapped);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const std::string& each : {std::string(bytes), with_checksum(bytes)}) {
        read_info(each);
        read_descriptor(each);
    }
    read_greeting(bytes);
    read_word(bytes);
    return 0;
}
