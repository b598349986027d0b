// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/make_driver.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/drivers/netconf_driver.h"
#include "csrc/netconf/ssh_stream.h"
#include "csrc/sys/socket/name_lookup.h"

namespace pccl::cluster {
namespace {

class FabricDriver final : public SwitchDriver {
   public:
    [[nodiscard]] Commitment commitment() const override { return Commitment::kConfirmed; }

    void begin(Step step, const Intent& intent) override {
        if (step == Step::kRead) shown_ = running_;
        if (step == Step::kCommit) before_ = std::exchange(running_, intent.to);
        if (step == Step::kCancel) running_ = before_;
        if (step == Step::kWrite) running_ = intent.to;
    }
    Result<bool> advance() override { return true; }
    [[nodiscard]] Readiness readiness() const override { return {}; }
    [[nodiscard]] const Circuits& circuits() const override { return shown_; }
    [[nodiscard]] const std::vector<int>& dark() const override { return dark_; }
    [[nodiscard]] bool has_startup() const override { return false; }
    std::string take_discarded() override { return {}; }
    void abandon(const Status& /*why*/) override {}
    std::vector<Exchange> take_exchanges() override { return {}; }

   private:
    Circuits running_;
    Circuits before_;
    Circuits shown_;
    const std::vector<int> dark_;  // never
};

Result<std::unique_ptr<netconf::ByteStream>> open_stream(const Management& management) {
    return netconf::make_ssh_stream(sys::NameLookup(management.host, management.port),
                                    {.host = concat(management.host, ":", management.port),
                                     .user = management.user,
                                     .key_file = management.key_file,
                                     .host_key = management.host_key,
                                     .accepts_any_host_key = management.accepts_any_host_key});
}

}  // namespace

std::unique_ptr<SwitchDriver> make_fabric_driver() { return std::make_unique<FabricDriver>(); }

Result<std::unique_ptr<SwitchDriver>> make_driver(const SwitchDescription& of) {
    if (of.is_in_process) return make_fabric_driver();
    return make_netconf_driver(
        *find_dialect(of.dialect), [management = of.management] { return open_stream(management); },
        of.ports);
}

}  // namespace pccl::cluster
