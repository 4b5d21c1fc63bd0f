// The pages that `bundles --html` and `time --html` write, in headless Chromium: laid out, drawn,
// nothing fetched from elsewhere, no error of a script. Skipped where there is no Chromium.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "tests/commands/browser.h"
#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The page that the command writes with `--html`.
std::string page_of(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "page.html").string();
  arguments.insert(arguments.end(), {"--html", path});
  const Outcome outcome = run_command(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string bundles_page(const std::string& kernel) {
  return page_of({"bundles", GRIDLESS_TEST_DATA "/bundles/" + kernel});
}

class Pages : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = find_browser();
    if (!found)
      GTEST_SKIP() << "there is no chromium in PATH, so no page is looked at: apt-get install "
                      "chromium, or name one by GRIDLESS_CHROMIUM";
    browser_ = *found;
  }
  nlohmann::json look(const std::string& html, const std::string& probe, const View& view = {}) {
    const auto seen = look_at(browser_, html, probe, view);
    EXPECT_THAT(seen.value("errors", std::vector<std::string>{"none"}), IsEmpty());
    EXPECT_THAT(seen.value("loaded", std::vector<std::string>{"none"}), IsEmpty());
    return seen;
  }

 private:
  std::string browser_;
};

// What both pages owe a reader: the page itself never scrolls sideways.
constexpr const char* kOverflow =
    "document.documentElement.scrollWidth-document.documentElement.clientWidth";

TEST_F(Pages, BundlesShowsTheFiguresOfTheSchedule) {
  const auto seen = look(bundles_page("matmul"), R"(
    const text=e=>e.innerText.trim(),all=q=>[...document.querySelectorAll(q)];
    const inside=(a,b)=>a.left>=b.left-1&&a.right<=b.right+1&&a.top>=b.top-1&&a.bottom<=b.bottom+1;
    const strip=[...document.querySelectorAll('svg')].find(s=>s.clientWidth>900);
    const box=strip.getBoundingClientRect();
    const bars=all('td.bar svg').map(s=>[...s.querySelectorAll('rect')].map(r=>r.getBBox().width));
    return {heading:text(document.querySelector('h1')),tiles:all('.tile').map(text),
      sections:all('h2').map(text),lines:all('table')[0].rows.length-1,
      stripMarks:strip.querySelectorAll('rect').length,
      stripOutside:[...strip.children].filter(e=>!inside(e.getBoundingClientRect(),box)).length,
      fullest:Math.max(...bars.map(b=>b[1]+(b[2]||0))),
      tooFull:bars.filter(b=>b[1]+(b[2]||0)>240.2).length,
      overlapping:all('.tile').filter((t,i,a)=>i>0&&a[i-1].getBoundingClientRect().right>
        t.getBoundingClientRect().left&&a[i-1].getBoundingClientRect().bottom>
        t.getBoundingClientRect().top+1).length,
      overflow:)" + std::string(kOverflow) + "}");
  ASSERT_FALSE(seen.is_null());
  EXPECT_THAT(seen["heading"].get<std::string>(), HasSubstr("matmul"));
  // The figures that `bundles` prints as text for this dump: 333 cycles, 71 % of them empty.
  const std::string tiles = seen["tiles"].dump();
  EXPECT_THAT(tiles, AllOf(HasSubstr("333\\ncycles"), HasSubstr("71 %"), HasSubstr("1,212")));
  EXPECT_EQ(seen["sections"], (nlohmann::json{"The schedule", "Source lines", "Loops", "Slots",
                                              "What the empty cycles wait for"}));
  EXPECT_GT(seen["lines"], 5);
  EXPECT_GT(seen["stripMarks"], 20);
  EXPECT_EQ(seen["stripOutside"], 0);
  EXPECT_NEAR(seen["fullest"].get<double>(), 240, 0.3);  // the dearest line fills its bar
  EXPECT_EQ(seen["tooFull"], 0);
  EXPECT_EQ(seen["overlapping"], 0);
  EXPECT_EQ(seen["overflow"], 0);
}

TEST_F(Pages, BundlesFitsANarrowWindow) {
  for (const char* kernel : {"all_reduce", "double_buffer", "softmax", "while"}) {
    const auto seen = look(bundles_page(kernel),
                           "return {tables:[...document.querySelectorAll('table')].filter("
                           "t=>t.clientHeight>0).length,overflow:" +
                               std::string(kOverflow) + "}",
                           {.width = 500, .height = 800});
    ASSERT_FALSE(seen.is_null());
    EXPECT_EQ(seen["overflow"], 0) << kernel;
    EXPECT_GE(seen["tables"], 3) << kernel;
  }
}

TEST_F(Pages, TimeDrawsEveryCoreAndAnswersTheMouse) {
  const auto seen = look(page_of({"time", "kernel:15_all_reduce", "--cores", "4"}), R"(
    const c=document.getElementById('c'),g=c.getContext('2d');
    const pixels=()=>g.getImageData(0,0,c.width,c.height).data;
    const row=k=>{const d=g.getImageData(0,k*26+2,c.width,20).data;let n=0;
      for(let i=3;i<d.length;i+=4)n+=d[i]>0;return n/d.length*4};
    const legend=[...document.querySelectorAll('#legend b')];
    const before=pixels(),rows=[0,1,2,3].map(row);
    const wheel=new WheelEvent('wheel',{deltaY:-100,clientX:600,clientY:60,cancelable:true});
    c.dispatchEvent(wheel);
    const after=pixels();let changed=0;
    for(let i=0;i<before.length;++i)changed+=before[i]!=after[i];
    const box=c.getBoundingClientRect();let about='';
    for(let x=box.left+1;x<box.right&&!about.startsWith('core 2');x+=3){
      c.dispatchEvent(new MouseEvent('mousemove',{clientX:x,clientY:box.top+2*26+5}));
      about=document.getElementById('about').textContent}
    return {title:document.getElementById('title').textContent,rows,changed,about,
      prevented:wheel.defaultPrevented,
      legend:legend.map(b=>getComputedStyle(b).backgroundColor),
      words:document.getElementById('legend').textContent,overflow:)" + std::string(kOverflow) +
                                                                                        "}");
  ASSERT_FALSE(seen.is_null());
  EXPECT_THAT(seen["title"].get<std::string>(), HasSubstr("15_all_reduce"));
  ASSERT_EQ(seen["rows"].size(), 4u);
  for (const double covered : seen["rows"]) EXPECT_GT(covered, 0.3);  // of the core's track
  EXPECT_GT(seen["changed"], 1000);
  EXPECT_EQ(seen["prevented"], true);  // the wheel zooms and does not scroll
  EXPECT_THAT(seen["about"].get<std::string>(),
              AllOf(HasSubstr("core 2: "), HasSubstr(" us, "), HasSubstr("15_all_reduce.cc:")));
  ASSERT_EQ(seen["legend"].size(), 7u);
  EXPECT_EQ(std::set<std::string>(seen["legend"].begin(), seen["legend"].end()).size(), 7u);
  EXPECT_THAT(seen["words"].get<std::string>(), HasSubstr("wait for peer"));
  EXPECT_EQ(seen["overflow"], 0);
}

}  // namespace
}  // namespace gridless::testing
