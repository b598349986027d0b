// SPDX-License-Identifier: Apache-2.0

// A folder of files for each test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace pccl::sys {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
   protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "pccl_file_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    [[nodiscard]] std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    fs::path folder_;
};

}  // namespace pccl::sys
