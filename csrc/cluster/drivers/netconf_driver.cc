// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/netconf_driver.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/netconf/difference.h"
#include "csrc/netconf/operations.h"
#include "csrc/netconf/session.h"

namespace pccl::cluster {
namespace {

using netconf::Datastore;

/// Purpose of a reply.
enum class Purpose { kCarriedOut, kCircuits, kLight, kLocked, kCandidate, kRunning };

struct NetconfOperation {
    // NOLINTNEXTLINE(google-explicit-constructor): most are no more than XML
    NetconfOperation(std::string text, Purpose what = Purpose::kCarriedOut)
        : xml(std::move(text)), purpose(what) {}

    std::string xml;
    Purpose purpose;
};
using Operations = std::deque<NetconfOperation>;

/// Returns the name of the operation that is the root of `xml`.
std::string name_in(std::string_view xml) {
    return std::string(xml.substr(1, xml.find_first_of("/>") - 1));
}

std::vector<int> sorted(std::vector<int> ports) {
    std::ranges::sort(ports);
    return ports;
}

class NetconfDriver final : public SwitchDriver {
   public:
    NetconfDriver(const Dialect& dialect, OpenStream open, std::vector<int> ports)
        : dialect_(dialect), open_(std::move(open)), ports_(sorted(std::move(ports))) {}

    [[nodiscard]] Commitment commitment() const override {
        if (!has("candidate:1.0")) return Commitment::kImmediate;
        return has("confirmed-commit:1.1") ? Commitment::kConfirmed : Commitment::kCandidate;
    }

    void begin(Step step, const Intent& intent) override {
        step_ = step;
        intent_ = intent;
        fault_ = Status::ok();
        waiting_ = {};
        refusal_ = Status::ok();
        has_discarded_ = false;
        is_awaiting_reply_ = false;
        if (step == Step::kConnect)
            connect();
        else if (session_ == nullptr)
            fault_ = Status::peer_lost(kNoRank, "there is no session");
        else
            waiting_ = operations_of(step);
    }

    Result<bool> advance() override {
        PCCL_TRY(fault_);
        auto outcome = step_ == Step::kConnect ? session_->connect_step() : query_all();
        if (!outcome.is_ok()) fault_ = outcome.status();
        if (session_->is_over()) session_.reset();
        return outcome;
    }

    [[nodiscard]] Readiness readiness() const override {
        if (session_ == nullptr) return {};
        const sys::Interest interest = session_->interest();
        return {.fd = interest.fd, .input = interest.input, .output = interest.output};
    }
    [[nodiscard]] const Circuits& circuits() const override { return circuits_; }
    [[nodiscard]] const std::vector<int>& dark() const override { return dark_; }

    [[nodiscard]] bool has_startup() const override { return has("startup:1.0"); }
    std::string take_discarded() override { return std::exchange(discarded_, {}); }

    void abandon(const Status& why) override {
        if (is_awaiting_reply_) note(why.message());
        is_awaiting_reply_ = false;
        fault_ = why;
        session_.reset();
    }

    [[nodiscard]] std::string awaited() const override {
        return session_ == nullptr ? std::string() : session_->awaited();
    }

    std::vector<Exchange> take_exchanges() override { return std::exchange(exchanges_, {}); }

   private:
    [[nodiscard]] bool has(std::string_view capability) const {
        return session_ != nullptr &&
               session_->capabilities().has(concat("capability:", capability));
    }
    [[nodiscard]] bool has_candidate() const { return commitment() != Commitment::kImmediate; }

    void connect() {
        if (session_ != nullptr) return;
        auto stream = open_();
        fault_ = stream.status();
        has_lock_ = false;
        if (stream.is_ok())
            session_ = std::make_unique<netconf::NetconfSession>(std::move(stream).value());
    }

    [[nodiscard]] Operations operations_of(Step step) const {
        const bool confirms = commitment() == Commitment::kConfirmed;
        switch (step) {
            case Step::kLock:
                return locking();
            case Step::kRead:
                return {{netconf::get_config(Datastore::kRunning, filter_xml(dialect_)),
                         Purpose::kCircuits}};
            case Step::kLight:
                return dialect_.state.empty()
                           ? Operations{}
                           : Operations{
                                 {netconf::get(light_filter_xml(dialect_)), Purpose::kLight}};
            case Step::kPrepare:
                return has_candidate() ? editing(intent_.from) : Operations{};
            case Step::kCommit:
                if (confirms) return {netconf::confirmed_commit({intent_.confirm_timeout, {}})};
                return has_candidate() ? Operations{netconf::commit()} : writing(intent_.from);
            case Step::kConfirm:
                return confirms ? Operations{netconf::commit()} : Operations{};
            case Step::kCancel:
                return confirms ? Operations{netconf::cancel_commit()} : Operations{};
            case Step::kWrite:
                return anew();
            case Step::kSave:
                return has_startup() ? Operations{netconf::copy_config(Datastore::kRunning,
                                                                       Datastore::kStartup)}
                                     : Operations{};
            case Step::kRelease:
                return releasing();
            case Step::kConnect:
                break;
        }
        return {};
    }

    /// Returns the lock operations. The candidate is shared: a server refuses to lock a modified
    /// one (RFC 6241, 8.3.5.2), and take_lock() then reads its edits. Running is locked only if it
    /// is written directly, as some servers cannot revert a commit while it is locked.
    [[nodiscard]] Operations locking() const {
        if (!has_candidate()) return {{netconf::lock(Datastore::kRunning), Purpose::kLocked}};
        return {{netconf::lock(Datastore::kCandidate), Purpose::kLocked},
                netconf::discard_changes()};
    }
    /// Returns nothing without the lock: the candidate then holds edits of others.
    [[nodiscard]] Operations releasing() const {
        if (!has_lock_) return {};
        if (!has_candidate()) return {netconf::unlock(Datastore::kRunning)};
        return {netconf::discard_changes(), netconf::unlock(Datastore::kCandidate)};
    }

    /// Returns edits of the candidate: the switch replaces a circuit at once.
    [[nodiscard]] Operations editing(const Circuits& from) const {
        const Change change = change_between(from, intent_.to);
        if (change.is_empty()) return {};
        const auto xml = edit_xml(dialect_, change.removed_for_good(), change.add);
        return {netconf::edit_config(xml, {.target = Datastore::kCandidate,
                                           .test_then_set = has("validate:1.1"),
                                           .rollback_on_error = has("rollback-on-error:1.0")})};
    }

    /// Returns edits of running: break before make, as a port may be in only one circuit at any
    /// time.
    [[nodiscard]] Operations writing(const Circuits& from) const {
        const Change change = change_between(from, intent_.to);
        const netconf::EditArgs args{.target = Datastore::kRunning,
                                     .test_then_set = has("validate:1.1"),
                                     .rollback_on_error = has("rollback-on-error:1.0")};
        Operations edits;
        if (!change.remove.empty())
            edits.push_back(netconf::edit_config(edit_xml(dialect_, change.remove, {}), args));
        if (!change.add.empty())
            edits.push_back(netconf::edit_config(edit_xml(dialect_, {}, change.add), args));
        return edits;
    }

    [[nodiscard]] Operations anew() const {
        if (!has_candidate()) return writing(circuits_);
        Operations operations = editing(circuits_);
        if (operations.empty()) return operations;
        operations.push_front(netconf::discard_changes());
        operations.push_back(netconf::commit());
        return operations;
    }

    Result<bool> query_all() {
        for (;;) {
            if (!is_awaiting_reply_) {
                if (waiting_.empty()) return true;
                send_request();
            }
            PCCL_ASSIGN_OR_RETURN(auto reply, answer());
            if (!reply) return false;
            note(reply->errors.empty() ? "ok" : reply->status().message());
            is_awaiting_reply_ = false;
            const Purpose purpose = waiting_.front().purpose;
            waiting_.pop_front();
            PCCL_TRY(take(purpose, *std::move(reply)));
        }
    }

    Status take(Purpose purpose, netconf::Reply reply) {
        if (purpose == Purpose::kLocked) return take_lock(reply);
        if (!refusal_.is_ok() && !reply.errors.empty()) return refusal_;
        PCCL_TRY(reply.status());
        if (purpose == Purpose::kCircuits) return take_circuits(reply.content);
        if (purpose == Purpose::kLight) dark_ = dark_in(dialect_, reply.content);
        if (purpose == Purpose::kCandidate) candidate_ = std::move(reply.content);
        if (purpose == Purpose::kRunning) return take_edits(reply.content);
        return Status::ok();
    }

    Status take_circuits(const sys::XmlElement& reply) {
        PCCL_ASSIGN_OR_RETURN(circuits_, own_circuits_in(reply));
        return Status::ok();
    }

    /// Handles the reply to a lock. If the candidate was not locked, requests its edits.
    Status take_lock(const netconf::Reply& reply) {
        has_lock_ = reply.errors.empty();
        if (has_lock_ || !has_candidate() || has_discarded_) return reply.status();
        refusal_ = reply.status();
        is_held_ = reply.errors.front().names_session();
        waiting_ = {{netconf::get_config(Datastore::kCandidate, {}), Purpose::kCandidate},
                    {netconf::get_config(Datastore::kRunning, {}), Purpose::kRunning}};
        return Status::ok();
    }

    /// Reports the edits in the candidate, or discards them and locks the candidate.
    Status take_edits(const sys::XmlElement& running) {
        Status refusal = std::exchange(refusal_, Status::ok());
        const auto* const before = running.child("data");
        const auto* const after = candidate_.child("data");
        if (before == nullptr || after == nullptr) return refusal;
        auto edits = netconf::differences(*before, *after, dialect_.name_space);
        if (edits.empty()) return refusal;
        // Circuits are many, so other edits come first.
        std::ranges::stable_partition(edits, [this](const auto& each) { return !is_ours(each); });
        const std::string listed = netconf::to_string(edits);
        if (!intent_.discards_candidate && !are_of_a_controller(edits, running))
            return Status::unavailable(
                concat(refusal.message(), "; its candidate holds edits that nobody has committed: ",
                       listed, "; discard_candidate=True (--discard-candidate) throws them away"));
        discarded_ = listed;
        has_discarded_ = true;
        waiting_ = locking();
        waiting_.push_front(netconf::discard_changes());
        return Status::ok();
    }

    /// Returns whether the edits are exactly those that a controller of this cluster prepares: it
    /// ended before its commit.
    [[nodiscard]] bool are_of_a_controller(const std::vector<netconf::Difference>& edits,
                                           const sys::XmlElement& running) const {
        if (is_held_ || intent_.is_of_phase == nullptr) return false;
        if (!is_ours(edits.front())) return false;  // other edits come first
        const auto before = own_circuits_in(running);
        const auto after = own_circuits_in(candidate_);
        return before.is_ok() && after.is_ok() && *before != *after && intent_.is_of_phase(*after);
    }

    /// Returns whether the edit is in the module of the circuits.
    [[nodiscard]] bool is_ours(const netconf::Difference& each) const {
        return each.name_space == dialect_.name_space;
    }

    [[nodiscard]] Result<Circuits> own_circuits_in(const sys::XmlElement& reply) const {
        PCCL_ASSIGN_OR_RETURN(Circuits circuits, circuits_in(dialect_, reply));
        std::erase_if(circuits, [this](const Circuit& each) { return is_foreign(each); });
        return circuits;
    }

    [[nodiscard]] bool is_foreign(const Circuit& circuit) const {
        return !ports_.empty() && !std::ranges::binary_search(ports_, circuit.ingress);
    }

    void send_request() {
        session_->request(waiting_.front().xml);
        requested_at_ = system_clock().now();
        is_awaiting_reply_ = true;
    }

    Result<std::optional<netconf::Reply>> answer() {
        auto reply = session_->advance();
        if (reply.is_ok()) return reply;
        note(reply.status().message());
        is_awaiting_reply_ = false;
        if (!refusal_.is_ok()) return refusal_;  // even if reading the candidate failed
        return reply;
    }

    void note(std::string outcome) {
        exchanges_.push_back({.operation = name_in(waiting_.front().xml),
                              .message_id = session_->message_id(),
                              .took = system_clock().now() - requested_at_,
                              .outcome = std::move(outcome)});
    }

    const Dialect& dialect_;
    const OpenStream open_;
    const std::vector<int> ports_;                      // in ascending order
    std::unique_ptr<netconf::NetconfSession> session_;  // null: not connected
    Step step_ = Step::kConnect;
    Intent intent_;
    Operations waiting_;  // of the step; the first is in flight if is_awaiting_reply_
    bool is_awaiting_reply_ = false;
    TimePoint requested_at_;
    Status fault_;
    Status refusal_;             // reason of the refused lock, while the candidate is read
    bool is_held_ = false;       // by another session, according to the switch
    sys::XmlElement candidate_;  // candidate that was read meanwhile
    bool has_discarded_ = false;
    std::string discarded_;
    bool has_lock_ = false;
    Circuits circuits_;
    std::vector<int> dark_;
    std::vector<Exchange> exchanges_;
};

}  // namespace

std::unique_ptr<SwitchDriver> make_netconf_driver(const Dialect& dialect, OpenStream open,
                                                  std::vector<int> ports) {
    return std::make_unique<NetconfDriver>(dialect, std::move(open), std::move(ports));
}

}  // namespace pccl::cluster
