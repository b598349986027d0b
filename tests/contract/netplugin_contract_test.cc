// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/rma_contract.h"
#include "tests/contract/transport_contract.h"
#include "tests/fakes/net_member.h"
#include "tests/fakes/strict_plugin.h"

namespace pccl::transport::contract {
namespace {

/// The plug-in checks that nothing violates the ABI.
class LawfulPlugin : public testing::Environment {
   public:
    void TearDown() override {
        for (int version = 6; version <= 12; ++version)
            EXPECT_EQ(fakes::StrictPlugin(fakes::strict_net_plugin_of(version)).violations(), 0)
                << "version " << version;
    }
};
[[maybe_unused]] const auto* const kLawful = testing::AddGlobalTestEnvironment(new LawfulPlugin);

/// Links over the strict plug-in with the table of one version, by its rules.
std::function<Result<MemberMaker>()> world_of(int version, const std::string& rules) {
    return [version, rules]() -> Result<MemberMaker> {
        const std::string file = fakes::strict_net_plugin_of(version);
        fakes::StrictPlugin(file).set(rules);
        return MemberMaker(
            [file](Waiter& own) { return fakes::net_member(own, {.plugin = file}); });
    };
}

/// Links over PCCL's own plug-in, which is loaded as any other is.
Result<MemberMaker> world_of_own_plugin() {
    return MemberMaker(
        [](Waiter& own) { return fakes::net_member(own, {.plugin = fakes::own_net_plugin()}); });
}

Candidate links(std::string name, int version, const std::string& rules = "") {
    return {std::move(name), world_of(version, rules)};
}

// Null where the plug-in could work, sizes that are never written, one device: in turn.
INSTANTIATE_TEST_SUITE_P(
    NetPlugin, TransportContract,
    testing::Values(links("v6", 6, "seed=6,null=30"), links("v7", 7, "seed=7,null=30,sizes=0"),
                    links("v8", 8, "devices=1"), links("v9", 9, "seed=9,null=60"),
                    links("v10", 10, "align=1"),
                    links("v11", 11, "seed=11,null=30,devices=4,ports=2"),
                    links("v12", 12, "sizes=0"), Candidate{"own", &world_of_own_plugin}),
    candidate_name);

RmaCandidate rma(std::string name, int version, const std::string& rules = "") {
    return {.name = std::move(name), .new_world = world_of(version, rules)};
}

// A child of fork() cannot use a plug-in that its parent has started: RmaProcesses does not apply.
INSTANTIATE_TEST_SUITE_P(NetPlugin, RmaContract,
                         testing::Values(rma("v6", 6, "seed=6,null=30"), rma("v12", 12),
                                         RmaCandidate{.name = "own",
                                                      .new_world = &world_of_own_plugin}),
                         rma_candidate_name);

}  // namespace
}  // namespace pccl::transport::contract
