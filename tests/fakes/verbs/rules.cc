// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/rules.h"

#include <cerrno>
#include <cstring>
#include <random>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/execute.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/queues.h"

namespace pccl::fake_verbs {

namespace {

bool applies(const SharedRule& entry, const SharedQp& qp, const SendWqe& request) {
    const Fabric& all = fabric();
    const fake_verbs_rule& rule = entry.rule;
    const SharedPort& port = all.ports[qp.port];
    if (rule.all_processes == 0 && entry.process != qp.process) return false;
    if (rule.qp != 0 && rule.qp != qp.qpn) return false;
    if (rule.opcode != 0 && rule.opcode != static_cast<int>(request.opcode) + 1) return false;
    if (rule.empty != 0 && request.length != 0) return false;
    if (rule.port != 0 && rule.port != port.number) return false;
    return rule.device[0] == '\0' || (std::strcmp(rule.device, port.device) == 0 &&
                                      port.host == all.processes[entry.process].host);
}

uint64_t delivered_elsewhere(const fake_verbs_rule& rule) {
    if (rule.effect != FAKE_VERBS_HOLD_FOR) return fabric().delivered;
    const Index other = find_qp(rule.other_qp);
    return other != kNone ? fabric().qps[other].delivered : kNever / 2;
}

void hold(SharedQp& qp, const SharedRule& entry) {
    const fake_verbs_rule& rule = entry.rule;
    uint64_t ms = rule.ms;
    if (rule.jitter_ms > 0) {
        std::mt19937_64 random(rule.seed + entry.matched);
        ms += random() % (uint64_t{rule.jitter_ms} + 1);
    }
    qp.held_until = now_ns() + ms * 1'000'000;
    qp.held_count = delivered_elsewhere(rule) + rule.operations;
}

// The rule that was found for a request; null once it is removed.
const fake_verbs_rule* rule_of(const SharedQp& qp) {
    if (qp.rule == kNone) return nullptr;
    const SharedRule& entry = fabric().rules[qp.rule];
    return entry.used && entry.generation == qp.rule_generation ? &entry.rule : nullptr;
}

}  // namespace

const fake_verbs_rule* find_rule(SharedQp& qp) {
    SharedRule* rules = fabric().rules;
    if (qp.ruled_for != qp.sq_next + 1) {
        qp.ruled_for = qp.sq_next + 1;
        qp.rule = kNone;
        const SendWqe& request = send_at(qp, qp.sq_next);
        for (Index i = 0; i < kMaxRules && qp.rule == kNone; ++i) {
            SharedRule& entry = rules[i];
            if (!entry.used || !applies(entry, qp, request)) continue;
            const uint64_t before = entry.matched++;
            if (before < entry.rule.skip) continue;
            if (entry.rule.count != 0 && before - entry.rule.skip >= entry.rule.count) continue;
            qp.rule = i;
            qp.rule_generation = entry.generation;
            hold(qp, entry);
        }
    }
    return rule_of(qp);
}

void keep_late(SharedQp& qp) {
    const fake_verbs_rule* const rule = qp.wait == Wait::kHeld ? rule_of(qp) : nullptr;
    if (rule == nullptr || rule->effect != FAKE_VERBS_OUTLIVE) return;
    qp.late_next = qp.sq_next;
    qp.late_end = qp.sq_head;
}

bool is_late_held(const SharedQp& qp) { return rule_of(qp) != nullptr; }

bool is_held(const SharedQp& qp, const fake_verbs_rule& rule, uint64_t now) {
    switch (rule.effect) {
        case FAKE_VERBS_STALL:
        case FAKE_VERBS_OUTLIVE:
            return true;
        case FAKE_VERBS_DELAY:
        case FAKE_VERBS_HOLD_FOR:
            return now < qp.held_until || delivered_elsewhere(rule) < qp.held_count;
        default:
            return false;
    }
}

}  // namespace pccl::fake_verbs

using pccl::fake_verbs::Lock;

int fake_verbs_add_rule(const fake_verbs_rule* rule) {
    using namespace pccl::fake_verbs;
    const Lock lock;
    SharedRule* rules = fabric().rules;
    for (Index i = 0; i < kMaxRules; ++i) {
        if (rules[i].used) continue;
        rules[i].rule = *rule;
        rules[i].process = this_process_index();
        rules[i].matched = 0;
        ++rules[i].generation;
        rules[i].used = true;
        return static_cast<int>(i) + 1;
    }
    return -ENOSPC;
}

int fake_verbs_remove_rule(int number) {
    using namespace pccl::fake_verbs;
    const Lock lock;
    SharedRule* rules = fabric().rules;
    if (number < 0 || number > static_cast<int>(kMaxRules)) return EINVAL;
    for (Index i = 0; i < kMaxRules; ++i) {
        if (number == 0 || static_cast<int>(i) + 1 == number) rules[i].used = false;
    }
    for (Index i = 0; i < fabric().qps_end; ++i) deliver_late(i);
    advance_waiting();
    return 0;
}

int fake_verbs_progress() {
    using namespace pccl::fake_verbs;
    const Lock lock;
    advance_waiting();
    return 0;
}
