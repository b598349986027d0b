// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/cluster/fake_switch.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/netconf/frame.h"

namespace pccl::cluster {
namespace {

constexpr std::string_view kBase = "urn:ietf:params:xml:ns:netconf:base:1.0";
constexpr std::string_view kCapability = "urn:ietf:params:netconf:";

std::string error(std::string_view tag, std::string_view info = "") {
    return concat("<rpc-error><error-type>application</error-type><error-tag>", tag,
                  "</error-tag><error-severity>error</error-severity>", info, "</rpc-error>");
}

std::string_view local_name(std::string_view name) {
    const std::size_t colon = name.find(':');
    return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

const char* leaf(Dialect::Path path) { return path.front().data(); }

/// With egress 0 for a port that is off.
Circuit circuit_in(pugi::xml_node entry, const Dialect& dialect) {
    const pugi::xml_text egress = entry.child(leaf(dialect.egress)).text();
    const bool is_flag = dialect.kind == SwitchKind::kPorts;
    return {entry.child(leaf(dialect.ingress)).text().as_int(),
            is_flag ? int{egress.as_bool()} : egress.as_int()};
}

std::string spelt(const Dialect& dialect, const Circuit& circuit) {
    const bool is_flag = dialect.kind == SwitchKind::kPorts;
    return concat("<", leaf(dialect.ingress), ">", circuit.ingress, "</", leaf(dialect.ingress),
                  "><", leaf(dialect.egress), ">", is_flag ? "true" : concat(circuit.egress), "</",
                  leaf(dialect.egress), ">");
}

}  // namespace

class FakeStream final : public netconf::ByteStream {
   public:
    explicit FakeStream(FakeSwitch& of) : of_(of), session_(++of.sessions_) {
        outgoing_ = netconf::framed(of_.hello(session_), netconf::Framing::kEndOfMessage);
    }
    FakeStream(const FakeStream&) = delete;
    FakeStream& operator=(const FakeStream&) = delete;
    ~FakeStream() override { of_.session_ends(session_); }

    Result<bool> connect_step() override {
        if (of_.is_gone) return Status::unavailable("fake: nobody listens there");
        return true;
    }
    Result<std::size_t> write_some(std::string_view bytes) override {
        reader_.add(bytes);
        for (auto message = reader_.next(); message.is_ok() && message->has_value() && !has_ended_;
             message = reader_.next())
            receive(**message);
        return bytes.size();
    }
    Result<std::size_t> read_some(std::span<char> into) override {
        if (of_.is_gone || (outgoing_.empty() && has_ended_))
            return Status::peer_lost(kNoRank, "fake: it closed the connection");
        const std::size_t got = std::min(into.size(), outgoing_.size());
        std::copy_n(outgoing_.begin(), got, into.begin());
        outgoing_.erase(0, got);
        return got;
    }
    [[nodiscard]] sys::Interest interest() const override { return {}; }

   private:
    void receive(const std::string& message) {
        pugi::xml_document document;
        document.load_string(message.c_str());
        const pugi::xml_node root = document.document_element();
        if (local_name(root.name()) == "hello") {
            if (of_.traits.has_chunks) reader_.set_framing(netconf::Framing::kChunked);
            return;
        }
        const auto content = of_.answer(root.first_child(), session_, has_ended_);
        if (!content) return;
        outgoing_ += netconf::framed(
            concat("<rpc-reply xmlns=\"", kBase, "\" message-id=\"",
                   root.attribute("message-id").value(), "\">", *content, "</rpc-reply>"),
            of_.traits.has_chunks ? netconf::Framing::kChunked : netconf::Framing::kEndOfMessage);
    }

    FakeSwitch& of_;
    const int session_;
    netconf::FrameReader reader_;
    std::string outgoing_;
    bool has_ended_ = false;
};

OpenStream FakeSwitch::door() {
    return [this]() -> Result<std::unique_ptr<netconf::ByteStream>> {
        return std::unique_ptr<netconf::ByteStream>(std::make_unique<FakeStream>(*this));
    };
}

std::unique_ptr<SwitchDriver> FakeSwitch::driver() {
    return make_netconf_driver(*find_dialect(traits.dialect), door());
}

const Circuits& FakeSwitch::running() {
    run_timer();
    return running_;
}

std::string FakeSwitch::hello(int session) const {
    std::string list = concat("<capability>", kCapability, "base:1.0</capability>");
    const auto offer = [&](std::string_view name) {
        list += concat("<capability>", kCapability, name, "</capability>");
    };
    if (traits.has_chunks) offer("base:1.1");
    offer("capability:writable-running:1.0");
    if (traits.has_candidate) offer("capability:candidate:1.0");
    if (traits.has_candidate) offer("capability:validate:1.1");
    if (traits.has_confirmed_commit) offer("capability:confirmed-commit:1.1");
    if (traits.has_startup) offer("capability:startup:1.0");
    return concat("<hello xmlns=\"", kBase, "\"><capabilities>", list,
                  "</capabilities><session-id>", session, "</session-id></hello>");
}

std::optional<std::string> FakeSwitch::answer(pugi::xml_node operation, int session, bool& ends) {
    run_timer();
    std::string name(local_name(operation.name()));
    const bool confirms = name == "commit" && before_ && operation.child("confirmed").empty();
    operations_.push_back(confirms ? "confirm" : name);
    const std::string called = operations_.back();
    // Whoever holds a lock cannot take it again, either.
    const bool is_barred = lock_holder_ != session || name == "lock";
    if (lock_holder_ != 0 && is_barred && !name.starts_with("get"))
        return error(
            name == "lock" ? "lock-denied" : "in-use",
            concat("<error-info><session-id>", lock_holder_, "</session-id></error-info>"));
    bool is_carried_out = true;
    if (traits.faults > 0)
        if (auto fault = this->fault(called, ends, is_carried_out)) return fault;
    if (!is_carried_out) return std::nullopt;
    std::string content = carry_out(name, operation, session);
    if (ends) return std::nullopt;
    return content;
}

std::optional<std::string> FakeSwitch::fault(const std::string& name, bool& ends,
                                             bool& is_carried_out) {
    const auto is = [&](const std::string& trait) { return trait == name; };
    if (!is(traits.reject) && !is(traits.drop) && !is(traits.drop_late) && !is(traits.hang) &&
        !is(traits.lie))
        return std::nullopt;
    --traits.faults;
    if (is(traits.reject)) return error("operation-failed");
    if (is(traits.lie)) return "<ok/>";
    ends = is(traits.drop) || is(traits.drop_late);
    is_carried_out = is(traits.drop_late);
    return std::nullopt;
}

std::string FakeSwitch::carry_out(const std::string& name, pugi::xml_node operation, int session) {
    if (name == "edit-config") return edit(operation);
    if (name == "commit") return commit(operation, session);
    if (name == "get-config") return shown(operation);
    if (name == "get") return light();
    if (name == "lock") return lock(session);
    if (name == "unlock") lock_holder_ = 0;
    if (name == "copy-config") startup_ = running_;
    if (name == "discard-changes") {
        candidate_ = running_;
        other_edits_.clear();
    }
    if (name == "cancel-commit") {
        if (!before_) return error("operation-failed");
        take_back();
    }
    return "<ok/>";
}

/// RFC 6241, 7.5: not while the candidate has been edited, and neither committed nor discarded.
std::string FakeSwitch::lock(int session) {
    const std::string editor =
        traits.editor == 0
            ? std::string()
            : concat("<error-info><session-id>", traits.editor, "</session-id></error-info>");
    if (traits.has_candidate && is_edited()) return error("resource-denied", editor);
    lock_holder_ = session;
    return "<ok/>";
}

std::string FakeSwitch::edit(pugi::xml_node operation) {
    const bool on_running = !operation.child("target").child("running").empty();
    Circuits edited = on_running ? running_ : candidate_;
    for (const pugi::xml_node entry : operation.child("config").first_child().children()) {
        const Circuit circuit = circuit_in(entry, dialect());
        const auto at = std::find_if(edited.begin(), edited.end(), [&](const Circuit& each) {
            return each.ingress == circuit.ingress;
        });
        const bool is_deletion =
            std::string_view(entry.attribute("nc:operation").value()) == "delete";
        if (is_deletion && at == edited.end()) return error("data-missing");
        const bool deletes = is_deletion || circuit.egress == 0;
        if (at != edited.end()) edited.erase(at);
        if (!deletes) edited.push_back(circuit);
    }
    std::set<int> egresses;
    for (const Circuit& each : edited)
        if (!dialect().is_electrical() && !egresses.insert(each.egress).second)
            return error("operation-failed");
    std::sort(edited.begin(), edited.end());
    (on_running ? running_ : candidate_) = edited;
    if (on_running) candidate_ = running_;
    return "<ok/>";
}

std::string FakeSwitch::commit(pugi::xml_node operation, int session) {
    if (operation.child("confirmed").empty()) {
        before_.reset();
    } else {
        if (!before_) before_ = running_;
        confirm_session_ = session;
        confirm_until_ = clock_.now() + std::chrono::seconds(
                                            operation.child("confirm-timeout").text().as_int(600));
    }
    running_ = candidate_;
    return "<ok/>";
}

std::string FakeSwitch::shown(pugi::xml_node operation) const {
    const bool is_candidate = !operation.child("source").child("candidate").empty();
    const std::string_view list = dialect().containers.front();
    const std::string_view entry = dialect().entry;
    std::string entries;
    for (const Circuit& each : is_candidate ? candidate_ : running_)
        entries += concat("<", entry, ">", spelt(dialect(), each), "</", entry, ">");
    return concat("<data><", list, " xmlns=\"", dialect().name_space, "\">", entries, "</", list,
                  ">", is_candidate ? other_edits_ : "", "</data>");
}

std::string FakeSwitch::light() const {
    std::string leaves;
    for (const int port : dark) leaves += concat("<dark>", port, "</dark>");
    return concat("<data><state xmlns=\"", dialect().name_space, "\">", leaves, "</state></data>");
}

void FakeSwitch::session_ends(int session) {
    if (lock_holder_ == session) lock_holder_ = 0;
    if (confirm_session_ == session && !traits.forgets_timer) take_back();
}

void FakeSwitch::run_timer() {
    if (before_ && clock_.now() >= confirm_until_ && !traits.forgets_timer) take_back();
}

void FakeSwitch::take_back() {
    if (!before_) return;
    running_ = candidate_ = *before_;
    before_.reset();
}

}  // namespace pccl::cluster
