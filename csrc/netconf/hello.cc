// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/hello.h"

#include <algorithm>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/netconf/message.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::netconf {
namespace {

constexpr std::string_view kPrefix = "urn:ietf:params:netconf:";

Status no_hello(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("no hello of a NETCONF server: ", what));
}

}  // namespace

bool Capabilities::has(std::string_view name) const {
    return std::any_of(uris.begin(), uris.end(), [&](const std::string& uri) {
        if (!uri.starts_with(kPrefix)) return false;
        const std::string_view rest = std::string_view(uri).substr(kPrefix.size());
        return rest == name || (rest.starts_with(name) && rest[name.size()] == '?');
    });
}

Framing Capabilities::framing() const {
    return has("base:1.1") ? Framing::kChunked : Framing::kEndOfMessage;
}

std::string client_hello() {
    return concat("<?xml version=\"1.0\" encoding=\"UTF-8\"?><hello xmlns=\"", kBaseNamespace,
                  "\"><capabilities><capability>", kPrefix, "base:1.0</capability><capability>",
                  kPrefix, "base:1.1</capability></capabilities></hello>");
}

Result<Capabilities> parse_hello(std::string_view message) {
    const auto root = read_message(message);
    if (root.status().code() == StatusCode::kUnsupported) return root.status();
    if (!root.is_ok()) return no_hello(root.status().message());
    if (root->name != "hello" || root->name_space != kBaseNamespace)
        return no_hello("its root is not <hello>");
    Capabilities capabilities;
    const auto id = number_in<std::uint32_t>(root->text_of("session-id"), 1, UINT32_MAX);
    if (!id) return no_hello("its session-id is no number from 1 to 4294967295");
    capabilities.session_id = *id;
    if (const auto* list = root->child("capabilities"); list != nullptr)
        for (const sys::XmlElement& each : list->children)
            if (each.name == "capability") capabilities.uris.emplace_back(sys::trimmed(each.text));
    if (!capabilities.has("base:1.0") && !capabilities.has("base:1.1"))
        return no_hello("it has neither base:1.0 nor base:1.1");
    return capabilities;
}

}  // namespace pccl::netconf
