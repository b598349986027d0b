// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/xml/xml_reader.h"

#include <gmock/gmock.h>

#include "tests/cpp/sys/xml_documents.h"

namespace pccl::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(XmlReaderTest, ReadsNamesNamespacesAttributesAndText) {
    const auto root = read_xml(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!-- c --><x:a xmlns:x=\"urn:x\" "
        "xmlns=\"urn:d\" id=\"1&amp;2\" x:id=\"3\"> one <b/> &lt;two&gt;<![CDATA[<3>]]></x:a>");
    ASSERT_TRUE(root.is_ok()) << root.status().to_string();
    EXPECT_EQ(root->name, "a");
    EXPECT_EQ(root->name_space, "urn:x");
    EXPECT_THAT(root->attributes, ElementsAre(XmlElement::XmlAttribute{"id", "", "1&2"},
                                              XmlElement::XmlAttribute{"id", "urn:x", "3"}));
    EXPECT_EQ(trimmed(root->text), "one  <two><3>");
    EXPECT_EQ(root->child("b")->name_space, "urn:d");
    EXPECT_EQ(root->child("c"), nullptr);
}

TEST(XmlReaderTest, RefusesDeclarationsOfTypesAndWhatTheyWouldDefine) {
    EXPECT_THAT(refusal("<!DOCTYPE a [<!ENTITY b \"ha\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>"),
                HasSubstr("document type declaration"));
    EXPECT_THAT(refusal("<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>"),
                HasSubstr("document type declaration"));
    EXPECT_THAT(refusal("<a>&b;</a>"), HasSubstr("not well-formed"));
}

TEST(XmlReaderTest, RefusesWhatIsNotWellFormed) {
    for (const std::string_view text : {"", " ", "<a>", "<a></b>", "<a/><b/>", "<a b='1' b='2'/>",
                                        "<x:a/>", "text", "<a>\xff</a>", "<a>&#0;</a>", "<a"})
        EXPECT_FALSE(read_xml(text).is_ok()) << text;
    EXPECT_THAT(refusal("<a>\n</b>"), HasSubstr("line 2"));
}

}  // namespace
}  // namespace pccl::sys
