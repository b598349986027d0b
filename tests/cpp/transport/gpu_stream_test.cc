// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/gpu_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "tests/fakes/late_cuda.h"

namespace pccl::transport {
namespace {

class GpuStreamTest : public testing::Test {
   protected:
    /// Begins a copy out of `stage`.
    std::shared_ptr<GpuEvent> begin_copy(const GpuStage& stage) {
        return stream_
            ->copy(std::vector<sys::cuda::Copy>{{.to = device_address(into_.data()),
                                                 .from = device_address(stage.bytes().data()),
                                                 .bytes = into_.size()}})
            .value();
    }

    fakes::LateCudaDriver driver_;
    std::vector<std::byte> into_ = std::vector<std::byte>(64);
    std::shared_ptr<GpuStages> stages_ =
        GpuStages::create(driver_, 0, {.bytes = into_.size(), .most = 1});
    std::unique_ptr<GpuStream> stream_ = GpuStream::create(driver_, 0).value();
};

TEST_F(GpuStreamTest, AStageIsLentAgainOnceTheEngineIsDone) {
    driver_.be_late(3);
    auto stage = stages_->take().value();
    const auto event = begin_copy(*stage);
    event->release_after(std::move(stage));
    EXPECT_NE(stages_->take().value(), nullptr);
}

/// The engine may go on later, and would read or write what somebody else has by then.
TEST_F(GpuStreamTest, AStageIsLentToNobodyAfterAnEngineThatStandsStill) {
    driver_.be_late(1000000000);
    auto stage = stages_->take().value();
    const auto event = begin_copy(*stage);
    event->release_after(std::move(stage));
    EXPECT_EQ(stages_->take().value(), nullptr);
}

}  // namespace
}  // namespace pccl::transport
