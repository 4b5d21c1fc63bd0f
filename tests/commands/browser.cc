#include "tests/commands/browser.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "<pre id=\"probed\">", kEnd = "</pre>";

// The probe's result ends up in the document, which the browser prints. It is percent-encoded, so
// that nothing in it is markup. What begins the page stays in front: without it pages are laid out
// by older rules.
std::string with_probe(const std::string& html, const std::string& probe) {
  const size_t doctype = html.find('>') + 1;
  return html.substr(0, doctype) +
         "<script>window.seenErrors=[];window.onerror=m=>{window.seenErrors.push(String(m))};"
         "</script>" +
         html.substr(doctype) + "<script>(()=>{let r;try{r=(()=>{" + probe +
         "})()}catch(e){r={};window.seenErrors.push('probe: '+e)}"
         "r.errors=window.seenErrors;"
         "r.loaded=performance.getEntriesByType('resource').map(e=>e.name);"
         "const p=document.createElement('pre');p.id='probed';"
         "p.textContent=encodeURIComponent(JSON.stringify(r));document.body.append(p)})()</script>";
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '%' && k + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(k + 1, 2)), nullptr, 16));
      k += 2;
    } else {
      out += text[k];
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> find_browser() {
  if (const char* named = std::getenv("GRIDLESS_CHROMIUM")) return named;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = folder + "/chromium";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

nlohmann::json look_at(const std::string& browser, const std::string& html,
                       const std::string& probe, const View& view) {
  const TemporaryFolder folder;
  const fs::path page = folder.path() / "page.html";
  std::ofstream(page) << with_probe(html, probe);
  // No sandbox: containers and root have none to offer, and the page is our own.
  const Outcome outcome = run_program(
      {browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
       "--no-first-run", "--user-data-dir=" + (folder.path() / "profile").string(),
       "--window-size=" + std::to_string(view.width) + "," + std::to_string(view.height),
       "--virtual-time-budget=2000", "--dump-dom", "file://" + page.string()});
  const size_t begin = outcome.out.find(kBegin), end = outcome.out.find(kEnd, begin);
  if (outcome.status != 0 || begin == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << browser << " ended with " << outcome.status << ": " << outcome.err;
    return {};
  }
  const size_t from = begin + kBegin.size();
  return nlohmann::json::parse(decoded(std::string_view(outcome.out).substr(from, end - from)));
}

}  // namespace gridless::testing
