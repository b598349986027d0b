// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/drivers/fabric_driver.h"

#include <utility>

namespace pccl::cluster {
namespace {

class FabricDriver final : public Driver {
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

}  // namespace

std::unique_ptr<Driver> make_fabric_driver() { return std::make_unique<FabricDriver>(); }

}  // namespace pccl::cluster
