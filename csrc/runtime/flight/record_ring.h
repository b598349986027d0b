// SPDX-License-Identifier: Apache-2.0

// Ring of the last entries of a record that is always on. Threads write its slots with plain
// stores, without a lock.
//
// A slot's number is 0 while it is written. A reader accepts the fields only if the number was the
// same before and after, so it never returns a mixture of two entries (a sequence lock for each
// slot; H.-J. Boehm, "Can seqlocks get along with programming language memory models?", 2012).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::runtime {

/// `Fields` are atomics, which are loaded and stored with std::memory_order_relaxed. Thread-safe.
template <typename Fields, std::size_t Slots>
class RecordRing {
    static_assert(std::has_single_bit(Slots));

   public:
    /// Adds an entry that `write(fields)` fills in, and returns its number, from 1.
    template <typename Write>
    std::uint64_t add(const Write& write) {
        const std::uint64_t number = last_.fetch_add(1, std::memory_order_relaxed) + 1;
        Slot& slot = slots_[number % Slots];
        slot.number.store(0, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        write(slot.fields);
        slot.number.store(number, std::memory_order_release);
        return number;
    }
    /// Returns an entry to be changed; null where a later one has replaced it.
    [[nodiscard]] Fields* find(std::uint64_t number) {
        Slot& slot = slots_[number % Slots];
        const bool is_there = slot.number.load(std::memory_order_relaxed) == number;
        return number != 0 && is_there ? &slot.fields : nullptr;
    }
    /// Returns `read(number, fields)` of an entry if it is still there and complete.
    template <typename Read>
    [[nodiscard]] auto read(std::uint64_t number, const Read& read) const {
        auto entry = read_slot(slots_[number % Slots], read);
        return number != 0 && entry && entry->first == number
                   ? std::optional(std::move(entry->second))
                   : std::nullopt;
    }
    /// Returns `read(number, fields)` of all such entries, oldest first.
    template <typename Read>
    [[nodiscard]] auto all(const Read& read) const {
        std::vector<Numbered<Read>> entries;
        for (const Slot& slot : slots_)
            if (auto entry = read_slot(slot, read)) entries.push_back(std::move(*entry));
        std::ranges::sort(entries, {}, &Numbered<Read>::first);
        std::vector<Entry<Read>> sorted;
        sorted.reserve(entries.size());
        for (auto& entry : entries) sorted.push_back(std::move(entry.second));
        return sorted;
    }

   private:
    struct Slot {
        alignas(kCacheLine) std::atomic<std::uint64_t> number{0};
        Fields fields;
    };
    template <typename Read>
    using Entry = std::invoke_result_t<Read, std::uint64_t, const Fields&>;
    template <typename Read>
    using Numbered = std::pair<std::uint64_t, Entry<Read>>;

    template <typename Read>
    static std::optional<Numbered<Read>> read_slot(const Slot& slot, const Read& read) {
        const std::uint64_t number = slot.number.load(std::memory_order_acquire);
        if (number == 0) return std::nullopt;
        Numbered<Read> entry(number, read(number, slot.fields));
        std::atomic_thread_fence(std::memory_order_acquire);
        if (slot.number.load(std::memory_order_relaxed) != number) return std::nullopt;
        return entry;
    }

    std::array<Slot, Slots> slots_;
    std::atomic<std::uint64_t> last_{0};
};

}  // namespace pccl::runtime
