// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/reply.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"
#include "csrc/netconf/hello.h"

namespace pccl::netconf {
namespace {

constexpr std::size_t kMostErrors = 64;
constexpr std::size_t kMostShown = 400;

struct CodeOfTag {
    std::string_view tag;
    StatusCode code;
};
constexpr std::array kCodes = {
    CodeOfTag{"in-use", StatusCode::kUnavailable},
    CodeOfTag{"lock-denied", StatusCode::kUnavailable},
    CodeOfTag{"resource-denied", StatusCode::kResourceExhausted},
    CodeOfTag{"too-big", StatusCode::kResourceExhausted},
    CodeOfTag{"operation-not-supported", StatusCode::kUnsupported},
};

StatusCode code_of(std::string_view tag) {
    const auto* const found = std::find_if(kCodes.begin(), kCodes.end(),
                                           [&](const CodeOfTag& each) { return each.tag == tag; });
    return found == kCodes.end() ? StatusCode::kInvalidArgument : found->code;
}

std::string shown(std::string_view text) { return printable(text, kMostShown); }

RpcError error_in(const sys::XmlElement& element) {
    const auto text = [&](std::string_view name) { return shown(element.text_of(name)); };
    RpcError error{text("error-type"),
                   text("error-tag"),
                   text("error-severity"),
                   text("error-app-tag"),
                   text("error-path"),
                   text("error-message"),
                   {}};
    if (const auto* info = element.child("error-info"); info != nullptr)
        error.session_id = shown(info->text_of("session-id"));
    return error;
}

}  // namespace

std::string RpcError::to_string() const {
    std::string line = tag.empty() ? "an error without a tag" : tag;
    if (!app_tag.empty()) line += concat(" (", app_tag, ")");
    if (!message.empty()) line += concat(": ", message);
    if (!path.empty()) line += concat(" at ", path);
    if (!session_id.empty()) line += concat(" (held by session ", session_id, ")");
    return line;
}

Status Reply::status() const {
    if (errors.empty()) return Status::ok();
    std::string message = errors.front().to_string();
    if (errors.size() > 1) message += concat(", and ", errors.size() - 1, " errors more");
    return {code_of(errors.front().tag), std::move(message)};
}

Result<Reply> parse_reply(sys::XmlElement root) {
    if (root.name != "rpc-reply" || root.name_space != kBaseNamespace)
        return Status::peer_lost(kNoRank, "no NETCONF: the root of an answer is not <rpc-reply>");
    Reply reply;
    if (const auto* id = root.attribute("message-id"); id != nullptr) reply.message_id = *id;
    for (const sys::XmlElement& each : root.children) {
        if (each.name != "rpc-error" || reply.errors.size() >= kMostErrors) continue;
        RpcError error = error_in(each);
        auto& list = error.severity == "warning" ? reply.warnings : reply.errors;
        if (list.size() < kMostErrors) list.push_back(std::move(error));
    }
    reply.content = std::move(root);
    return reply;
}

}  // namespace pccl::netconf
