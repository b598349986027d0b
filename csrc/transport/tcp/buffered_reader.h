// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include <pccl/status.h>
#include "csrc/base/assert.h"
#include "csrc/base/ids.h"
#include "csrc/transport/link.h"

namespace pccl::transport::tcp {

/// Reader of one channel: into its own memory for peek(), straight into the caller's memory for
/// long reads. `Source` has read(), which returns the next bytes that have arrived.
template <typename Source>
class BufferedReader {
   public:
    explicit BufferedReader(Source source) : source_(std::move(source)) {}

    /// Reads more when there is nothing, or when the caller used none of the bytes that peek() last
    /// returned.
    Result<Bytes> peek() {
        if (held() == 0 || shown_) fill(window_);
        if (held() == 0 && !fault_.is_ok()) return fault_;
        shown_ = true;
        return Bytes(memory_.get() + begin_, held());
    }

    void consume(std::size_t count) {
        PCCL_ASSERT(count <= held());
        begin_ += count;
        shown_ = false;
    }

    Result<std::size_t> receive(MutableBytes into) {
        std::size_t received = take_held(into);
        if (into.size() - received >= kShortRead) {
            window_ = kShortRead;
            received += read(into.subspan(received));
        } else if (received < into.size()) {
            fill(kShortRead);
            received += take_held(into.subspan(received));
        }
        if (received == 0 && !into.empty() && !fault_.is_ok()) return fault_;
        return received;
    }

    [[nodiscard]] const Source& source() const { return source_; }
    [[nodiscard]] Source& source() { return source_; }

   private:
    [[nodiscard]] std::size_t held() const { return end_ - begin_; }

    std::size_t take_held(MutableBytes into) {
        const std::size_t count = std::min(held(), into.size());
        if (count > 0) std::memcpy(into.data(), memory_.get() + begin_, count);
        begin_ += count;
        shown_ = false;
        return count;
    }

    void fill(std::size_t wanted) {
        if (memory_ == nullptr) memory_ = std::make_unique_for_overwrite<std::byte[]>(kMemory);
        if (kMemory - end_ < wanted || held() == 0) {
            if (held() > 0) std::memmove(memory_.get(), memory_.get() + begin_, held());
            end_ = held();
            begin_ = 0;
        }
        const std::size_t room = std::min(wanted, kMemory - end_);
        const std::size_t got = read({memory_.get() + end_, room});
        end_ += got;
        if (got == room) window_ = std::min(2 * window_, kMemory);
    }

    std::size_t read(MutableBytes into) {
        if (!fault_.is_ok()) return 0;
        const auto got = source_.read(into);
        if (got.is_ok()) return *got;
        fault_ = got.status();
        return 0;
    }

    static constexpr std::size_t kMemory = 256 * kKiB;
    // A header and a short message come with one read; only this much of a long message is copied
    // twice.
    static constexpr std::size_t kShortRead = 8 * kKiB;

    Source source_;
    std::unique_ptr<std::byte[]> memory_;  // allocated on first use; contains [begin_, end_)
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t window_ = kShortRead;  // bytes that a peek requests: grows while they keep coming
    bool shown_ = false;
    Status fault_;  // of the source, returned once held() is 0
};

}  // namespace pccl::transport::tcp
