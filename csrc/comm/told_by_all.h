// What all ranks of a group say about one matter, so that they decide it alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl::comm {

/// The words of all `ranks`, in their order, by run(), which runs a collective of theirs.
template <typename Word, typename Run>
    requires std::is_trivially_copyable_v<Word>
Result<std::vector<Word>> told_by_all(int ranks, Word own, Run run) {
    std::vector<Word> words(static_cast<std::size_t>(ranks));
    const std::array<Block, 1> input{{{reinterpret_cast<std::byte*>(&own), sizeof own}}};
    std::vector<Block> outputs;
    outputs.reserve(words.size());
    for (Word& word : words) outputs.push_back({reinterpret_cast<std::byte*>(&word), sizeof word});
    PCCL_TRY(run(Collective{.kind = CollectiveKind::kAllGather,
                            .type = DataType::kUint8,
                            .inputs = input,
                            .outputs = outputs}));
    return words;
}

template <typename Word, typename Test>
std::vector<Rank> ranks_where(const std::vector<Word>& words, Test test) {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < words.size(); ++rank)
        if (test(words[rank])) ranks.push_back(static_cast<Rank>(rank));
    return ranks;
}

/// Text in a word: cut where it is too long.
template <std::size_t Size>
struct ShortText {
    ShortText() = default;
    explicit ShortText(const std::string& text) {
        std::memcpy(characters.data(), text.data(), std::min(text.size(), Size - 1));
    }
    /// Up to the first 0: a peer's may have none.
    [[nodiscard]] std::string text() const {
        return {characters.data(), ::strnlen(characters.data(), Size)};
    }
    friend bool operator==(const ShortText&, const ShortText&) = default;

    std::array<char, Size> characters{};
};

}  // namespace pccl::comm
