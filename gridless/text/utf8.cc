#include "gridless/text/utf8.h"

#include <utf8proc.h>

#include <cstdlib>

#include "gridless/base/check.h"

namespace gridless::text {

Utf8Char utf8_at(std::string_view text, size_t pos) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[pos + i]); };
  const size_t left = text.size() - pos;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, Utf8Status::kValid};
  int size = 0;
  // The allowed range of the second byte excludes overlong forms, surrogates and what is above
  // U+10FFFF; later bytes are always 80..BF.
  unsigned low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0xFFFD, 1, Utf8Status::kMalformed};
  }
  char32_t c = lead & (0x7F >> size);
  for (int i = 1; i < size; ++i) {
    if (static_cast<size_t>(i) >= left) return {0xFFFD, i, Utf8Status::kIncomplete};
    if (byte(i) < low || byte(i) > high) return {0xFFFD, i, Utf8Status::kMalformed};
    c = (c << 6) | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {c, size, Utf8Status::kValid};
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Char c = utf8_at(bytes, pos);
    if (c.status == Utf8Status::kValid) {
      out.append(bytes, pos, c.size);
    } else {
      append_utf8(out, 0xFFFD);
    }
    pos += c.size;
  }
  return out;
}

bool is_valid_utf8(std::string_view bytes) {
  for (size_t pos = 0; pos < bytes.size();) {
    const Utf8Char c = utf8_at(bytes, pos);
    if (c.status != Utf8Status::kValid) return false;
    pos += c.size;
  }
  return true;
}

size_t utf8_length(std::string_view text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

std::string normalize(std::string_view text, NormalForm form) {
  bool ascii = true;
  for (const char c : text) ascii &= static_cast<signed char>(c) >= 0;
  if (ascii) return std::string(text);  // every form leaves ASCII alone
  int options = UTF8PROC_STABLE;
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                             static_cast<utf8proc_option_t>(options));
  GRIDLESS_CHECK(size >= 0, "utf8proc refused text that was checked to be UTF-8: {}",
                 utf8proc_errmsg(size));
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return out;
}

}  // namespace gridless::text
