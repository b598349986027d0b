#include "csrc/sys/xml/xml_reader.h"

#include <gmock/gmock.h>

#include "csrc/base/text.h"

namespace pccl::sys {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(std::string_view text, const XmlReaderLimits& limits = {}) {
    return read_xml(text, limits).status().message();
}

std::string nested(int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "<a>";
    for (int i = 0; i < depth; ++i) text += "</a>";
    return text;
}

TEST(XmlReaderTest, ReadsNamesNamespacesAttributesAndText) {
    const auto root = read_xml(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!-- c --><x:a xmlns:x=\"urn:x\" "
        "xmlns=\"urn:d\" id=\"1&amp;2\" x:id=\"3\"> one <b/> &lt;two&gt;<![CDATA[<3>]]></x:a>");
    ASSERT_TRUE(root.is_ok()) << root.status().to_string();
    EXPECT_EQ(root->name, "a");
    EXPECT_EQ(root->name_space, "urn:x");
    EXPECT_THAT(root->attributes, ElementsAre(XmlElement::Attribute{"id", "", "1&2"},
                                              XmlElement::Attribute{"id", "urn:x", "3"}));
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

TEST(XmlReaderTest, KeepsItsLimits) {
    EXPECT_TRUE(read_xml(nested(64)).is_ok());
    EXPECT_THAT(refusal(nested(65)), HasSubstr("deeper than 64"));
    EXPECT_THAT(refusal("<a><b/><b/></a>", {.elements = 2}), HasSubstr("more than 2 elements"));
    EXPECT_THAT(refusal("<a>12</a>", {.bytes = 8}), HasSubstr("more than 8 bytes"));
}

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
