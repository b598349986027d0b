// SPDX-License-Identifier: Apache-2.0

// What a device sends: frames, hellos and replies. A message that is framed must be read back.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "csrc/base/text/printable.h"
#include "csrc/netconf/difference.h"
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

std::size_t elements_in(const sys::XmlElement& element) {
    std::size_t count = 1;
    for (const sys::XmlElement& each : element.children) count += elements_in(each);
    return count;
}

/// What libxml2 reads must have been counted before it got the text.
void read_bounded(std::string_view bytes) {
    const sys::XmlReaderLimits limits{.elements = 8, .depth = 4};
    const auto root = sys::read_xml(bytes, limits);
    if (root.is_ok() && elements_in(*root) > limits.elements) std::abort();
}

void show(std::string_view bytes) {
    const std::string line = printable(bytes, bytes.size());
    if (line.size() > bytes.size() || line != printable(line, line.size())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    read_frames(bytes, netconf::Framing::kEndOfMessage);
    read_frames(bytes, netconf::Framing::kChunked);
    frame_again(bytes);
    static_cast<void>(netconf::parse_hello(bytes));
    read_bounded(bytes);
    show(bytes);
    const auto root = sys::read_xml(bytes);
    if (root.is_ok() && !netconf::differences(*root, *root, root->name_space).empty()) std::abort();
    if (root.is_ok()) static_cast<void>(netconf::parse_reply(*root));
    return 0;
}
