// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/dialect.h"

#include <algorithm>
#include <optional>

#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::cluster {
namespace {

void replace(std::string& text, std::string_view what, std::string_view by) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
        text.replace(at, what.size(), by);
}

std::string filled(std::string_view form, const Circuit& circuit) {
    std::string text(form);
    replace(text, "{in}", concat(circuit.ingress));
    replace(text, "{out}", concat(circuit.egress));
    return text;
}

/// Returns `inside` within these containers of the dialect's module.
std::string wrapped(std::string_view name_space, Dialect::Path containers,
                    std::string_view inside) {
    std::string opening;
    std::string closing;
    for (const std::string_view name : containers) {
        opening += opening.empty() ? concat("<", name, " xmlns=\"", name_space, "\">")
                                   : concat("<", name, ">");
        closing = concat("</", name, ">", closing);
    }
    return concat(opening, inside, closing);
}

const sys::XmlElement* descend(const sys::XmlElement* element, Dialect::Path path) {
    for (const std::string_view name : path)
        if (element != nullptr) element = element->child(name);
    return element;
}

std::optional<int> port_at(const sys::XmlElement& entry, Dialect::Path path) {
    const sys::XmlElement* const leaf = descend(&entry, path);
    return leaf == nullptr ? std::nullopt : number_in<int>(sys::trimmed(leaf->text), 1, 65535);
}

Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("the switch shows circuits that cannot be: ", what));
}

/// Returns whether an interface is on. RFC 8343: an interface without the leaf is enabled.
Result<bool> is_on(const sys::XmlElement& entry, Dialect::Path path) {
    const sys::XmlElement* const leaf = descend(&entry, path);
    const std::string_view value = leaf == nullptr ? "true" : sys::trimmed(leaf->text);
    if (value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    return protocol_error("a port is neither on nor off");
}

/// Returns nothing for an entry that connects nothing.
Result<std::optional<Circuit>> circuit_in(const Dialect& dialect, const sys::XmlElement& entry) {
    const auto ingress = port_at(entry, dialect.ingress);
    if (dialect.kind == SwitchKind::kPorts) {
        PCCL_ASSIGN_OR_RETURN(const bool is_enabled, is_on(entry, dialect.egress));
        // Other interfaces have names that are not numbers.
        return ingress && is_enabled ? std::optional(Circuit{*ingress, 1}) : std::nullopt;
    }
    const auto egress = port_at(entry, dialect.egress);
    if (!ingress || !egress) return protocol_error("a port is no number from 1 to 65535");
    return std::optional(Circuit{*ingress, *egress});
}

}  // namespace

std::string edit_xml(const Dialect& dialect, const Circuits& remove, const Circuits& add) {
    std::string entries;
    for (const Circuit& gone : remove)
        entries += dialect.off.empty() ? concat("<", dialect.entry, " nc:operation=\"delete\">",
                                                filled(dialect.key, gone), "</", dialect.entry, ">")
                                       : concat("<", dialect.entry, ">", filled(dialect.off, gone),
                                                "</", dialect.entry, ">");
    for (const Circuit& added : add)
        entries += concat("<", dialect.entry, ">", filled(dialect.content, added), "</",
                          dialect.entry, ">");
    return wrapped(dialect.name_space, dialect.containers, entries);
}

std::string filter_xml(const Dialect& dialect) {
    return wrapped(dialect.name_space, dialect.containers, "");
}

std::string light_filter_xml(const Dialect& dialect) {
    return wrapped(dialect.name_space, dialect.state, "");
}

std::vector<int> dark_in(const Dialect& dialect, const sys::XmlElement& reply) {
    std::vector<int> dark;
    const sys::XmlElement* const state = descend(reply.child("data"), dialect.state);
    if (state == nullptr) return dark;
    for (const sys::XmlElement& leaf : state->children)
        if (leaf.name == dialect.dark)
            if (const auto port = number_in<int>(sys::trimmed(leaf.text), 1, 65535))
                dark.push_back(*port);
    std::sort(dark.begin(), dark.end());
    return dark;
}

Result<Circuits> circuits_in(const Dialect& dialect, const sys::XmlElement& reply) {
    const sys::XmlElement* const data = reply.child("data");
    if (data == nullptr) return protocol_error("an answer to get-config has no <data>");
    Circuits circuits;
    const sys::XmlElement* const list = descend(data, dialect.containers);
    if (list == nullptr) return circuits;
    for (const sys::XmlElement& entry : list->children) {
        if (entry.name != dialect.entry || entry.name_space != dialect.name_space) continue;
        PCCL_ASSIGN_OR_RETURN(const auto circuit, circuit_in(dialect, entry));
        if (circuit) circuits.push_back(*circuit);
    }
    std::sort(circuits.begin(), circuits.end());
    const std::string conflict = conflict_in(circuits, !dialect.is_electrical());
    if (!conflict.empty()) return protocol_error(conflict);
    return circuits;
}

}  // namespace pccl::cluster
