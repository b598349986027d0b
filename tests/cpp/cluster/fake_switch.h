// SPDX-License-Identifier: Apache-2.0

// A NETCONF server in memory with the faults that a real one will not show on demand.
#pragma once

#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/drivers/netconf_driver.h"
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Time that passes only when somebody sleeps.
class SleepyClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return now_; }
    void sleep_for(Duration duration) const override { now_ += duration; }

   private:
    mutable TimePoint now_ = system_clock().now();
};

/// What it offers, and what it does wrong. Operations by name: "commit", "edit-config"; "confirm"
/// is a commit that follows a confirmed one.
struct FakeTraits {
    bool has_chunks = true;
    bool has_candidate = true;
    bool has_confirmed_commit = true;
    std::string dialect = "pccl";
    std::string reject = {};     // answers with an error
    std::string drop = {};       // ends the session instead of answering; does nothing
    std::string drop_late = {};  // does it, then ends the session
    std::string hang = {};       // never answers, nor does it
    std::string lie = {};        // answers ok and does nothing
    int faults = 1 << 30;        // how often any of that happens
    bool forgets_timer = false;  // keeps an unconfirmed commit for ever
    bool has_startup = false;    // a datastore of its own for the next start
    int editor = 0;              // the session that is named where the candidate was edited
};

class FakeSwitch {
   public:
    FakeSwitch(FakeTraits its_traits, const Circuits& running, const Clock& clock)
        : traits(std::move(its_traits)), running_(running), candidate_(running), clock_(clock) {}

    [[nodiscard]] OpenStream door();
    [[nodiscard]] std::unique_ptr<SwitchDriver> driver();

    [[nodiscard]] const Circuits& running();
    void set_running(const Circuits& circuits) { running_ = candidate_ = circuits; }
    /// Somebody edits the candidate and goes: circuits, and a module of their own.
    void leave_in_candidate(const Circuits& circuits, std::string_view other = "") {
        candidate_ = circuits;
        other_edits_ = other;
    }
    [[nodiscard]] bool is_edited() const { return candidate_ != running_ || !other_edits_.empty(); }
    [[nodiscard]] const Circuits& startup() const { return startup_; }
    [[nodiscard]] bool is_locked() const { return lock_holder_ != 0; }
    void lock_for(int session) { lock_holder_ = session; }
    /// The names of the operations so far.
    [[nodiscard]] const std::vector<std::string>& operations() const { return operations_; }

    FakeTraits traits;
    bool is_gone = false;   // nobody listens
    std::vector<int> dark;  // ports to which no light comes

   private:
    friend class FakeStream;

    /// The content of a reply; nullopt: none ever.
    std::optional<std::string> answer(pugi::xml_node operation, int session, bool& ends);
    std::optional<std::string> fault(const std::string& name, bool& ends, bool& is_carried_out);
    std::string carry_out(const std::string& name, pugi::xml_node operation, int session);
    std::string edit(pugi::xml_node operation);
    std::string commit(pugi::xml_node operation, int session);
    std::string lock(int session);
    [[nodiscard]] std::string shown(pugi::xml_node operation) const;
    [[nodiscard]] std::string light() const;
    [[nodiscard]] const Dialect& dialect() const { return *find_dialect(traits.dialect); }
    [[nodiscard]] std::string hello(int session) const;
    void session_ends(int session);
    void run_timer();
    void take_back();

    Circuits running_;
    Circuits candidate_;
    std::string other_edits_;  // of the candidate, as XML
    Circuits startup_;
    std::optional<Circuits> before_;  // of an unconfirmed commit
    TimePoint confirm_until_;
    int confirm_session_ = 0;
    int lock_holder_ = 0;
    int sessions_ = 100;
    std::vector<std::string> operations_;
    const Clock& clock_;
};

}  // namespace pccl::cluster
