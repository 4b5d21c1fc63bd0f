// A page in a real browser, without a window: what it says about itself once it has been laid out.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace gridless::testing {

// Chromium: named by GRIDLESS_CHROMIUM, else in one of the folders of PATH.
std::optional<std::string> find_browser();

struct View {
  int width = 1200, height = 900;  // CSS pixels
};

// Opens the page and evaluates `probe`, the body of a JavaScript function, in it; its result, with
// "errors", the scripts' uncaught errors, and "loaded", what the page wanted from elsewhere. Null
// when the browser or the probe failed: what they said is then a test failure.
nlohmann::json look_at(const std::string& browser, const std::string& html,
                       const std::string& probe, const View& view = {});

}  // namespace gridless::testing
