// Text operations of Python's str on UTF-8, and the two ways of writing a string as a literal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridless::text::jinja {

std::string repr_string(std::string_view s);  // 'it\'s', as Python prints it in a list

std::string upper(std::string_view s);
std::string lower(std::string_view s);
std::string capitalize(std::string_view s);
std::string title(std::string_view s);         // str.title: after every non-letter
std::string title_filter(std::string_view s);  // Jinja's filter: after white space and ( [ { < -
std::string swapcase(std::string_view s);

// Code point classes of str.isalpha and so on; empty text gives false.
bool all_of(std::string_view s, bool (*test)(char32_t));
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_alnum(char32_t c);
bool is_python_space(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);

enum Side { kLeft = 1, kRight = 2, kBoth = 3 };
// Strips white space, or the code points of `chars` when given.
std::string_view strip(std::string_view s, Side side, const std::string_view* chars = nullptr);

// str.split and str.rsplit: `separator` null splits at runs of white space. `limit` < 0: no limit.
std::vector<std::string> split(std::string_view s, const std::string_view* separator,
                               int64_t limit);
std::vector<std::string> rsplit(std::string_view s, const std::string_view* separator,
                                int64_t limit);
std::vector<std::string> splitlines(std::string_view s, bool keep_ends);

// Byte positions of the code points, and the size at the end: offsets[i]..offsets[i + 1].
std::vector<size_t> code_point_offsets(std::string_view s);

}  // namespace gridless::text::jinja
