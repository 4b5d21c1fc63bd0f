// Templates against the text that jinja2 renders with the settings of transformers.
#include "gridless/text/chat_template.h"

#include "tests/text/data.h"

namespace gridless::text {
namespace {

using Json = nlohmann::ordered_json;

// "2026-03-07T09:05:03"
std::tm frozen(const std::string& text) {
  std::tm now{};
  EXPECT_NE(strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &now), nullptr);
  now.tm_isdst = 0;
  return now;
}

void check_cases(const std::string& file) {
  const Json all = read_json("chat_templates/" + file);
  const RenderOptions options{.now = frozen(all["strftime_now"].get<std::string>())};
  int n = 0;
  for (const auto& c : all["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::string source =
        c.contains("template_text")
            ? c["template_text"].get<std::string>()
            : read_data("chat_templates/" + c["template"].get<std::string>() + ".jinja");
    ++n;
    const auto parsed = Template::parse(source);
    const ChatInput input{c.value("messages", Json::array()), c.value("tools", Json()),
                          c.value("add_generation_prompt", true),
                          c.value("kwargs", Json::object())};
    const auto text =
        parsed ? render_chat(*parsed, input, options) : std::unexpected(parsed.error());
    if (c.contains("error")) {
      ASSERT_FALSE(text.has_value()) << source << "\nrendered: " << *text;
      if (c.contains("message")) {
        EXPECT_NE(text.error().message.find(c["message"].get<std::string>()), std::string::npos)
            << text.error().message << "\n"
            << source;
      }
    } else {
      EXPECT_TRUE(text.has_value()) << text.error().message << "\n" << source;
      EXPECT_EQ(text.value_or(""), c["rendered"].get<std::string>()) << source;
    }
  }
  EXPECT_GT(n, 50);
}

TEST(ChatTemplate, GoldenCases) { check_cases("cases.json"); }

// One line per corner of the language: every method, filter, test and kind of error.
TEST(ChatTemplate, CornersOfTheLanguage) { check_cases("more_cases.json"); }

}  // namespace
}  // namespace gridless::text
