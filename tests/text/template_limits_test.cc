// A hostile template ends with an error, soon and without eating the machine's memory; an honest
// one gets an error that says what and where.
#include <gtest/gtest.h>

#include "gridless/text/chat_template.h"

namespace gridless::text {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& source, const Json& variables = Json::object()) {
  const auto t = Template::parse(source);
  if (!t) return t.error().message;
  const auto text = t->render(variables);
  return text ? "rendered: " + text->substr(0, 100) : text.error().message;
}

void expect_error(const std::string& source, const std::string& part) {
  const std::string message = error_of(source);
  EXPECT_NE(message.find(part), std::string::npos)
      << source.substr(0, 100) << "\ngave: " << message;
}

std::string repeated(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

TEST(TemplateLimits, WorkIsBounded) {
  const std::string loops =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}";
  expect_error(loops + "{% endfor %}{% endfor %}{% endfor %}", "too much work");
  expect_error("{{ 'x' * 1000000000000 }}", "too much work");
  expect_error("{{ [1] * 1000000000000 }}", "too much work");
  expect_error("{{ 'x' * 9223372036854775807 }}", "too much work");
  expect_error(
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% "
      "endfor %}",
      "too much work");
  expect_error(
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}",
      "too much work");
  expect_error("{% set a = 'x' * 100000 %}{{ a.replace('x', a) }}", "too much work");
  expect_error("{{ a.ljust(100000000000) }}", "is undefined");
  expect_error("{{ 'a'.ljust(100000000000) }}", "too much work");
  expect_error("{{ ('a' * 10000)|indent(100000) }}", "4096");
  expect_error("{{ '%9999999d' % 1 }}", "4096");
  expect_error("{{ ','.join(['x' * 100000] * 100000) }}", "too much work");
  expect_error(
      "{{ range(100000)|list|tojson(indent=60)|length * ('a' * 3000000)|length ~ ('a' * 300000000) "
      "}}",
      "too much work");
  expect_error("{{ [1]|batch(9999999999999, 0)|list }}", "too much work");
  expect_error("{{ [1]|slice(9999999999999)|list }}", "too much work");
}

TEST(TemplateLimits, RecursionIsBounded) {
  expect_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recurses too deeply");
  expect_error("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "recurses too deeply");
  expect_error("{{ " + repeated("(", 100000) + repeated(")", 100000) + " }}", "levels deep");
  expect_error("{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}", "levels deep");
  expect_error("{{ " + repeated("not ", 100000) + "1 }}", "levels deep");
  expect_error("{{ " + repeated("-", 100000) + "1 }}", "levels deep");
  expect_error("{{ x" + repeated("|upper", 100000) + " }}", "levels deep");
  expect_error("{{ x" + repeated(".a", 100000) + " }}", "levels deep");
  expect_error("{{ 1" + repeated(" + 1", 100000) + " }}", "levels deep");
  expect_error("{{ 1" + repeated(" if 1 else 1", 100000) + " }}", "levels deep");
  expect_error(repeated("{% if 1 %}", 100000), "levels deep");
  expect_error(repeated("{% for a in b %}", 100000), "levels deep");
  expect_error("{% set " + repeated("(", 100000) + repeated(")", 100000) + " = 1 %}",
               "levels deep");
}

TEST(TemplateLimits, ValuesCannotNestWithoutEndOrFormCycles) {
  expect_error(
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "levels deep");
  expect_error(
      "{% set ns = namespace() %}{% for i in range(999) %}{% for y in [ns.x] %}{% set ns.x = loop "
      "%}"
      "{% endfor %}{% endfor %}",
      "levels deep");
  expect_error("{% set ns = namespace() %}{% set ns.x = [ns] %}", "cannot hold another namespace");
  expect_error("{% set ns = namespace() %}{% set ns.x = cycler(ns) %}",
               "cannot hold another namespace");
  // Macros that carry each other along: legal, and freed without recursion.
  EXPECT_EQ(
      error_of(
          "{% set ns = namespace(f=none) %}{% macro g(old) %}{% macro h() %}{{ old is none }}"
          "{% endmacro %}{% set ns.f = h %}{% endmacro %}{% for i in range(50000) %}{{ g(ns.f) }}"
          "{% endfor %}{{ ns.f() }}"),
      "rendered: False");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  EXPECT_EQ(error_of("{{ x }}", Json{{"x", deep}}), "chat template: the input nests too deeply");
}

TEST(TemplateErrors, NameTheLineAndTheConstruct) {
  EXPECT_EQ(error_of("a\nb\n{% include 'x' %}"),
            "chat template line 3: the statement 'include' is not supported");
  EXPECT_EQ(error_of("\n{{ x|nosuch }}"),
            "chat template line 2: the filter 'nosuch' is not supported");
  EXPECT_EQ(error_of("{{ x is nosuch }}"),
            "chat template line 1: the test 'nosuch' is not supported");
  EXPECT_EQ(error_of("{% if x %}\n\n"), "chat template line 2: the template ends before 'endif'");
  EXPECT_EQ(error_of("{{ a.b }}"), "chat template line 1: 'a' is undefined");
  EXPECT_EQ(error_of("{% for m in [1,\n2] %}\n{{ raise_exception('no ' ~ m) }}{% endfor %}"),
            "chat template line 3: no 1");
  EXPECT_EQ(error_of("{{ 9223372036854775807 + 1 }}"), "chat template line 1: integer overflow");
  EXPECT_EQ(error_of("{{ 99999999999999999999 }}"),
            "chat template line 1: '99999999999999999999' is not an integer of 64 bits");
}

TEST(ChatInputErrors, NameTheMessage) {
  const auto t = Template::parse("{{ messages }}").value();
  const auto error = [&](const char* messages) {
    return render_chat(t, {Json::parse(messages), {}, true, Json::object()}).error().message;
  };
  EXPECT_EQ(error("{}"), "messages must be a JSON array of objects with \"role\" and \"content\"");
  EXPECT_EQ(error("[1]"), "messages[0] is not an object");
  EXPECT_EQ(error(R"([{"role": "user"}, {"content": "x"}])"),
            "messages[1] has no \"role\" (a string such as \"user\")");
}

}  // namespace
}  // namespace gridless::text
