#include "gridless/emulate/schedule.h"

#include <algorithm>

#include "gridless/base/json.h"

namespace gridless::emulate {
namespace {

// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "gridless schedule";
constexpr int kVersion = 1;
constexpr int kMostCores = 128, kMostLaunches = 2;
constexpr const char* kDoes[] = {"core", "count", "read", "land"};  // by Choice::Kind

Json to_json(const Point& p) {
  return {{"core", p.core}, {"launch", p.launch}, {"event", p.event}, {"at", p.at}};
}

Json to_json(const Choice& c) {
  if (c.kind == Choice::Kind::kCore) return {{"core", c.core}};
  return {{"core", c.core},
          {"launch", c.launch},
          {"copy", c.copy},
          {"does", kDoes[static_cast<size_t>(c.kind)]}};
}

Json to_json(const Schedule& s) {
  Json out = {
      {"kind", s.kind}, {"message", s.message}, {"location", s.location}, {"launches", s.launches}};
  if (s.hold) {
    out["hold"] = to_json(s.hold->held);
    if (s.hold->copy) {
      out["hold"]["copy"] = *s.hold->copy;
      out["hold"]["may_read"] = s.hold->may_read;
    }
    out["until"] = to_json(s.hold->until);
  }
  for (const Choice& c : s.steps) out["steps"].push_back(to_json(c));
  return out;
}

// A whole number of [0, most].
Result<int64_t> number(const Json& json, const char* key, int64_t most) {
  const auto it = json.find(key);
  if (it == json.end()) return input_error("'{}' is missing", key);
  if (!it->is_number_integer() || it->get<int64_t>() < 0 || it->get<int64_t>() > most)
    return input_error("'{}' is {}, not a whole number from 0 to {}", key, it->dump(), most);
  return it->get<int64_t>();
}

Result<Json> object(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_object()) return input_error("'{}' is no object", key);
  return *it;
}

std::string text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

Result<Point> point(const Json& json, int cores, int launches) {
  TRY(const int64_t core, number(json, "core", cores - 1));
  TRY(const int64_t launch, number(json, "launch", launches - 1));
  TRY(const int64_t event, number(json, "event", INT64_MAX));
  return Point{.core = static_cast<int>(core),
               .launch = static_cast<int>(launch),
               .event = event,
               .at = text(json, "at")};
}

Result<Choice> choice(const Json& json, int cores, int launches) {
  if (!json.is_object()) return input_error("a step is {}, not an object", json.dump());
  TRY(const int64_t core, number(json, "core", cores - 1));
  Choice c{.core = static_cast<int>(core)};
  if (!json.contains("copy")) return c;
  TRY(const int64_t launch, number(json, "launch", launches - 1));
  TRY(c.copy, number(json, "copy", INT64_MAX));
  c.launch = static_cast<int>(launch);
  const std::string does = text(json, "does");
  const auto* const found = std::ranges::find(kDoes, does);
  if (found == std::end(kDoes) || found == std::begin(kDoes))
    return input_error("a copy does '{}' (known: count, read, land)", does);
  c.kind = static_cast<Choice::Kind>(found - std::begin(kDoes));
  return c;
}

Result<Schedule> schedule(const Json& json, int cores) {
  if (!json.is_object()) return input_error("it is no object");
  Schedule s{.kind = text(json, "kind"),
             .message = text(json, "message"),
             .location = text(json, "location")};
  TRY(const int64_t launches, number(json, "launches", kMostLaunches));
  if (launches == 0) return input_error("'launches' is 0");
  s.launches = static_cast<int>(launches);
  if (json.contains("hold")) {
    TRY(const Json held, object(json, "hold"));
    TRY(const Json until, object(json, "until"));
    Schedule::Hold hold;
    TRY(hold.held, point(held, cores, s.launches));
    TRY(hold.until, point(until, cores, s.launches));
    if (held.contains("copy")) {
      TRY(hold.copy, number(held, "copy", INT64_MAX));
      const auto may = held.find("may_read");
      if (may == held.end() || !may->is_boolean())
        return input_error("'may_read' is neither true nor false");
      hold.may_read = may->get<bool>();
    }
    s.hold = std::move(hold);
  }
  if (!json.contains("steps")) return s;
  if (!json["steps"].is_array()) return input_error("'steps' is no list");
  for (const Json& step : json["steps"]) {
    TRY(const Choice c, choice(step, cores, s.launches));
    s.steps.push_back(c);
  }
  return s;
}

}  // namespace

std::string to_json(const ScheduleFile& file) {
  Json list = Json::array();
  for (const Schedule& s : file.schedules) list.push_back(to_json(s));
  const Json out = {{"format", kFormat},
                    {"version", kVersion},
                    {"target", file.target},
                    {"cores", file.cores},
                    {"schedules", list}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ScheduleFile> parse_schedules(std::string_view text_of_file) {
  TRY(const Json json, parse_json<Json>(text_of_file, "the schedule file"));
  if (!json.is_object() || text(json, "format") != kFormat)
    return input_error("no schedule file: a JSON object with \"format\": \"{}\" is wanted",
                       kFormat);
  TRY(const int64_t version, number(json, "version", INT64_MAX));
  if (version != kVersion)
    return input_error("version {} of the schedule format (this program reads {})", version,
                       kVersion);
  ScheduleFile file{.target = text(json, "target")};
  TRY(const int64_t cores, number(json, "cores", kMostCores));
  if (cores == 0) return input_error("'cores' is 0");
  file.cores = static_cast<int>(cores);
  if (!json.contains("schedules") || !json["schedules"].is_array())
    return input_error("'schedules' is no list");
  for (const Json& one : json["schedules"]) {
    auto s = schedule(one, file.cores);
    if (!s)
      return std::unexpected(s.error().in(fmt::format("schedule {}", file.schedules.size() + 1)));
    file.schedules.push_back(std::move(*s));
  }
  return file;
}

}  // namespace gridless::emulate
