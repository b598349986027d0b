// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_text.h"

#include <gtest/gtest.h>

#include "csrc/base/text/text.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::sys {
namespace {

TEST(XmlReaderTest, EscapesWhatItReadsBack) {
    const std::string wild = "a<b>&\"c\"";
    const auto root =
        read_xml(concat("<a b=\"", escaped_xml(wild), "\">", escaped_xml(wild), "</a>"));
    ASSERT_TRUE(root.is_ok());
    EXPECT_EQ(root->text, wild);
    EXPECT_EQ(*root->attribute("b"), wild);
}

}  // namespace
}  // namespace pccl::sys
