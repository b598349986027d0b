// What a device sends: frames, hellos and replies. A message that is framed must be read back.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "csrc/netconf/frame.h"
#include "csrc/netconf/hello.h"
#include "csrc/netconf/reply.h"
#include "csrc/sys/xml/xml_reader.h"

namespace {

using namespace pccl;  // NOLINT(google-build-using-namespace): one function

void read_frames(std::string_view bytes, netconf::Framing framing) {
    netconf::FrameReader reader(std::size_t{1} << 16U);
    reader.set_framing(framing);
    reader.add(bytes);
    for (;;) {
        const auto message = reader.next();
        if (!message.is_ok() || !message->has_value()) return;
        if (framing == netconf::Framing::kChunked && (**message).empty()) std::abort();
    }
}

void frame_again(std::string_view message) {
    netconf::FrameReader reader;
    reader.set_framing(netconf::Framing::kChunked);
    reader.add(netconf::framed(message, netconf::Framing::kChunked));
    const auto again = reader.next();
    if (!message.empty() && (!again.is_ok() || *again != std::string(message))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    read_frames(bytes, netconf::Framing::kEndOfMessage);
    read_frames(bytes, netconf::Framing::kChunked);
    frame_again(bytes);
    static_cast<void>(netconf::parse_hello(bytes));
    const auto root = sys::read_xml(bytes);
    if (root.is_ok()) static_cast<void>(netconf::parse_reply(*root));
    return 0;
}
