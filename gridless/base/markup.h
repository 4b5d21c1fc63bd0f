// Text inside XML and HTML: drawings and pages.
#pragma once

#include <string>
#include <string_view>

namespace gridless {

// For element content and quoted attributes. Control letters, which XML does not allow, become '?';
// tabs and line ends stay.
std::string escape_markup(std::string_view text);

}  // namespace gridless
