// SPDX-License-Identifier: Apache-2.0

// The fuzz targets take every input of their corpora, without libFuzzer: so they compile, and what
// they once found stays mended, wherever tests are run.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "tests/fakes/places.h"

#define PCCL_FUZZER(name) \
    extern "C" int pccl_fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzzers.inc"
#undef PCCL_FUZZER

namespace pccl {
namespace {

struct Fuzzer {
    const char* name;
    int (*take)(const std::uint8_t*, std::size_t);
    friend std::ostream& operator<<(std::ostream& out, const Fuzzer& it) { return out << it.name; }
};

#define PCCL_FUZZER(name) {#name, pccl_fuzz_##name},
constexpr Fuzzer kFuzzers[] = {
#include "fuzzers.inc"
};
#undef PCCL_FUZZER

class CorpusTest : public testing::TestWithParam<Fuzzer> {};

TEST_P(CorpusTest, IsTaken) {
    const auto corpus = std::filesystem::path(pccl::fakes::in_tests("fuzz/corpus"));
    int inputs = 0;
    for (const auto& entry : std::filesystem::directory_iterator(corpus / GetParam().name)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        SCOPED_TRACE(entry.path());
        GetParam().take(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        ++inputs;
    }
    EXPECT_GT(inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(All, CorpusTest, testing::ValuesIn(kFuzzers),
                         [](const auto& fuzzer) { return fuzzer.param.name; });

}  // namespace
}  // namespace pccl
