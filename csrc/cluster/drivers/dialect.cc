#include "csrc/cluster/drivers/dialect.h"

#include <algorithm>
#include <optional>
#include <set>

#include "csrc/base/text.h"
#include "csrc/base/words.h"

namespace pccl::cluster {
namespace {

constexpr std::array<std::string_view, 1> kCrossConnects = {"cross-connects"};
constexpr std::array<std::string_view, 1> kIngress = {"ingress"};
constexpr std::array<std::string_view, 1> kEgress = {"egress"};
constexpr std::array<std::string_view, 2> kMediaChannels = {"wavelength-router", "media-channels"};
constexpr std::array<std::string_view, 3> kSourcePort = {"source", "config", "port-name"};
constexpr std::array<std::string_view, 3> kDestPort = {"dest", "config", "port-name"};

constexpr std::string_view kPairKey = "<ingress>{in}</ingress>";
constexpr std::string_view kPair = "<ingress>{in}</ingress><egress>{out}</egress>";

constexpr std::array kDialects = {
    // Our own module: csrc/cluster/yang/pccl-optical-switch.yang.
    Dialect{"pccl", "urn:pccl:yang:optical-switch", kCrossConnects, "pair", kPairKey, kPair,
            kIngress, kEgress},
    // HUBER+SUHNER Polatis; older firmware calls the list "pairs".
    Dialect{"polatis", "http://www.polatis.com/yang/optical-switch", kCrossConnects, "pair",
            kPairKey, kPair, kIngress, kEgress},
    Dialect{"polatis-pairs", "http://www.polatis.com/yang/optical-switch", kCrossConnects, "pairs",
            kPairKey, kPair, kIngress, kEgress},
    // A channel has the number of its ingress; ports are named by their numbers.
    Dialect{"openconfig-wavelength-router", "http://openconfig.net/yang/wavelength-router",
            kMediaChannels, "channel", "<index>{in}</index>",
            "<index>{in}</index><config><index>{in}</index><admin-status>ENABLED</admin-status>"
            "</config><source><config><port-name>{in}</port-name></config></source>"
            "<dest><config><port-name>{out}</port-name></config></dest>",
            kSourcePort, kDestPort},
};

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

/// `inside`, in the containers of the dialect.
std::string wrapped(const Dialect& dialect, std::string_view inside) {
    std::string opening;
    std::string closing;
    for (const std::string_view name : dialect.containers) {
        opening += opening.empty() ? concat("<", name, " xmlns=\"", dialect.name_space, "\">")
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

Status nonsense(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("the switch shows circuits that cannot be: ", what));
}

}  // namespace

const Dialect* find_dialect(std::string_view name) {
    const auto* const found = std::find_if(kDialects.begin(), kDialects.end(),
                                           [&](const Dialect& each) { return each.name == name; });
    return found == kDialects.end() ? nullptr : found;
}

std::string dialect_names() {
    std::string names;
    for (const Dialect& each : kDialects) names += concat(names.empty() ? "" : ", ", each.name);
    return names;
}

std::string edit_xml(const Dialect& dialect, const Circuits& remove, const Circuits& add) {
    std::string entries;
    for (const Circuit& gone : remove)
        entries += concat("<", dialect.entry, " nc:operation=\"delete\">",
                          filled(dialect.key, gone), "</", dialect.entry, ">");
    for (const Circuit& added : add)
        entries += concat("<", dialect.entry, ">", filled(dialect.content, added), "</",
                          dialect.entry, ">");
    return wrapped(dialect, entries);
}

std::string filter_xml(const Dialect& dialect) { return wrapped(dialect, ""); }

Result<Circuits> circuits_in(const Dialect& dialect, const sys::XmlElement& reply) {
    const sys::XmlElement* const data = reply.child("data");
    if (data == nullptr) return nonsense("an answer to get-config has no <data>");
    Circuits circuits;
    std::set<int> egresses;
    const sys::XmlElement* const list = descend(data, dialect.containers);
    if (list == nullptr) return circuits;
    for (const sys::XmlElement& entry : list->children) {
        if (entry.name != dialect.entry || entry.name_space != dialect.name_space) continue;
        const auto ingress = port_at(entry, dialect.ingress);
        const auto egress = port_at(entry, dialect.egress);
        if (!ingress || !egress) return nonsense("a port is no number from 1 to 65535");
        if (!egresses.insert(*egress).second)
            return nonsense(concat("two circuits leave by port ", *egress));
        circuits.push_back({*ingress, *egress});
    }
    std::sort(circuits.begin(), circuits.end());
    for (std::size_t i = 1; i < circuits.size(); ++i)
        if (circuits[i - 1].ingress == circuits[i].ingress)
            return nonsense(concat("two circuits begin at port ", circuits[i].ingress));
    return circuits;
}

}  // namespace pccl::cluster
