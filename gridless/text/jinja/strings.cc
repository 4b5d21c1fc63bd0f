#include "gridless/text/jinja/strings.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

template <typename F>
void each(std::string_view s, F f) {
  for (size_t pos = 0; pos < s.size();) {
    const Utf8Char c = utf8_at(s, pos);
    f(c.code_point);
    pos += c.size;
  }
}

void put_upper(std::string& out, char32_t c) {
  if (c == 0xDF) {  // the one special casing that occurs in practice
    out += "SS";
  } else {
    append_utf8(out, utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
  }
}

void put_title(std::string& out, char32_t c) {
  if (c == 0xDF) {
    out += "Ss";
  } else {
    append_utf8(out, utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
  }
}

void put_lower(std::string& out, char32_t c) {
  append_utf8(out, utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool contains(std::string_view set, char32_t c) {
  bool found = false;
  each(set, [&](char32_t x) { found |= x == c; });
  return found;
}

}  // namespace

std::string repr_string(std::string_view s) {
  const bool single = s.find('\'') != std::string_view::npos;
  const bool both = single && s.find('"') != std::string_view::npos;
  const char quote = single && !both ? '"' : '\'';
  std::string out(1, quote);
  each(s, [&](char32_t c) {
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      append_utf8(out, c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (printable(c)) {
      append_utf8(out, c);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  });
  return out + quote;
}

std::string upper(std::string_view s) {
  std::string out;
  each(s, [&](char32_t c) { put_upper(out, c); });
  return out;
}

std::string lower(std::string_view s) {
  std::string out;
  each(s, [&](char32_t c) { put_lower(out, c); });
  return out;
}

std::string capitalize(std::string_view s) {
  std::string out;
  bool first = true;
  each(s, [&](char32_t c) {
    first ? put_title(out, c) : put_lower(out, c);
    first = false;
  });
  return out;
}

std::string title(std::string_view s) {
  std::string out;
  bool inside = false;
  each(s, [&](char32_t c) {
    inside ? put_lower(out, c) : put_title(out, c);
    inside = is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
  });
  return out;
}

std::string title_filter(std::string_view s) {
  std::string out;
  bool inside = false;
  each(s, [&](char32_t c) {
    inside ? put_lower(out, c) : put_upper(out, c);
    inside = !(is_python_space(c) || contains("-({[<", c));
  });
  return out;
}

std::string swapcase(std::string_view s) {
  std::string out;
  each(s, [&](char32_t c) { is_upper(c) ? put_lower(out, c) : put_upper(out, c); });
  return out;
}

bool all_of(std::string_view s, bool (*test)(char32_t)) {
  bool ok = !s.empty();
  each(s, [&](char32_t c) { ok &= test(c); });
  return ok;
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_digit(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9;
}
bool is_alpha(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_alnum(char32_t c) {
  const utf8proc_category_t k = category(c);
  return is_alpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}
bool is_python_space(char32_t c) { return is_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string_view strip(std::string_view s, Side side, const std::string_view* chars) {
  const auto drop = [&](char32_t c) {
    return chars == nullptr ? is_python_space(c) : contains(*chars, c);
  };
  while ((side & kLeft) && !s.empty()) {
    const Utf8Char c = utf8_at(s, 0);
    if (!drop(c.code_point)) break;
    s.remove_prefix(c.size);
  }
  while ((side & kRight) && !s.empty()) {
    size_t start = s.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(s[start]) & 0xC0) == 0x80) --start;
    if (!drop(utf8_at(s, start).code_point)) break;
    s.remove_suffix(s.size() - start);
  }
  return s;
}

std::vector<std::string> split(std::string_view s, const std::string_view* separator,
                               int64_t limit) {
  std::vector<std::string> out;
  if (separator == nullptr) {
    s = strip(s, kLeft);
    while (!s.empty()) {
      size_t end = 0;
      if (limit >= 0 && static_cast<int64_t>(out.size()) >= limit) {
        out.emplace_back(s);  // the rest as it is, white space at its end included
        return out;
      }
      while (end < s.size()) {
        const Utf8Char c = utf8_at(s, end);
        if (is_python_space(c.code_point)) break;
        end += c.size;
      }
      out.emplace_back(s.substr(0, end));
      s = strip(s.substr(end), kLeft);
    }
    return out;
  }
  while (limit < 0 || static_cast<int64_t>(out.size()) < limit) {
    const size_t at = s.find(*separator);
    if (at == std::string_view::npos) break;
    out.emplace_back(s.substr(0, at));
    s.remove_prefix(at + separator->size());
  }
  out.emplace_back(s);
  return out;
}

std::vector<std::string> rsplit(std::string_view s, const std::string_view* separator,
                                int64_t limit) {
  if (limit < 0) return split(s, separator, limit);
  std::vector<std::string> out;
  if (separator == nullptr) s = strip(s, kRight);
  while (static_cast<int64_t>(out.size()) < limit) {
    if (separator != nullptr) {
      const size_t at = s.rfind(*separator);
      if (at == std::string_view::npos) break;
      out.emplace_back(s.substr(at + separator->size()));
      s = s.substr(0, at);
      continue;
    }
    size_t start = 0, pos = 0;  // the last word starts after the last white space
    while (pos < s.size()) {
      const Utf8Char c = utf8_at(s, pos);
      pos += c.size;
      if (is_python_space(c.code_point)) start = pos;
    }
    if (start == 0) break;
    out.emplace_back(s.substr(start));
    s = strip(s.substr(0, start), kRight);
  }
  if (separator != nullptr || !s.empty()) out.emplace_back(s);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string> splitlines(std::string_view s, bool keep_ends) {
  std::vector<std::string> out;
  size_t start = 0;
  for (size_t pos = 0; pos < s.size();) {
    const Utf8Char c = utf8_at(s, pos);
    size_t end = pos + c.size;
    const char32_t x = c.code_point;
    const bool ends_line = (x >= 0x0A && x <= 0x0D) || (x >= 0x1C && x <= 0x1E) || x == 0x85 ||
                           x == 0x2028 || x == 0x2029;
    if (ends_line) {
      if (x == '\r' && end < s.size() && s[end] == '\n') ++end;
      out.emplace_back(s.substr(start, (keep_ends ? end : pos) - start));
      start = end;
    }
    pos = end;
  }
  if (start < s.size()) out.emplace_back(s.substr(start));
  return out;
}

std::vector<size_t> code_point_offsets(std::string_view s) {
  std::vector<size_t> out;
  out.reserve(s.size() + 1);
  for (size_t pos = 0; pos < s.size();) {
    out.push_back(pos);
    pos += utf8_at(s, pos).size;
  }
  out.push_back(s.size());
  return out;
}

}  // namespace gridless::text::jinja
