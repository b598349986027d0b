// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/front_coding.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl::bootstrap {
namespace {

// Position and length of a difference take four bytes.
constexpr std::size_t kShortestGap = 4;

struct DifferingRun {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// Returns the differences of two texts of equal length.
std::vector<DifferingRun> differences(std::string_view before, std::string_view text) {
    std::vector<DifferingRun> runs;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == before[i]) continue;
        const bool goes_on = !runs.empty() && i - runs.back().end <= kShortestGap;
        if (!goes_on) runs.push_back({i, i});
        runs.back().end = i + 1;
    }
    return runs;
}

}  // namespace

void write_front_coded(std::span<const std::string> texts, ByteWriter& out) {
    std::string before;
    for (const std::string& text : texts) {
        before.resize(text.size());
        const std::vector<DifferingRun> runs = differences(before, text);
        out.u16(static_cast<std::uint16_t>(text.size()));
        out.u16(static_cast<std::uint16_t>(runs.size()));
        for (const auto& [begin, end] : runs) {
            out.u16(static_cast<std::uint16_t>(begin));
            out.u16(static_cast<std::uint16_t>(end - begin));
            out.raw(std::as_bytes(std::span(text).subspan(begin, end - begin)));
        }
        before = text;
    }
}

Status read_front_coded(ByteReader& in, std::size_t count, std::size_t longest,
                        const std::function<Status(std::string_view)>& take) {
    std::string text;
    for (; count > 0; --count) {
        std::uint16_t length = 0;
        std::uint16_t runs = 0;
        PCCL_TRY(in.u16(length));
        PCCL_TRY(in.u16(runs));
        if (length > longest)
            return Status::invalid_argument(concat("a text of ", length, " bytes before byte ",
                                                   in.offset(), "; at most ", longest));
        text.resize(length);
        for (; runs > 0; --runs) {
            std::uint16_t begin = 0;
            std::uint16_t bytes = 0;
            PCCL_TRY(in.u16(begin));
            PCCL_TRY(in.u16(bytes));
            if (begin + bytes > length)
                return Status::invalid_argument(
                    concat("a difference behind the end before byte ", in.offset()));
            PCCL_TRY(in.raw(std::as_writable_bytes(std::span(text).subspan(begin, bytes))));
        }
        PCCL_TRY(take(text));
    }
    return Status::ok();
}

}  // namespace pccl::bootstrap
