#include <nlohmann/json.hpp>

#include "gridless/bundles/report.h"

namespace gridless::bundles {
namespace {

using Json = nlohmann::ordered_json;

Json units(const UnitCounts& issued) {
  Json out = Json::object();
  for (int u = 1; u < kUnits; ++u) {
    if (issued[u] > 0) out[std::string(unit_name(static_cast<Unit>(u)))] = issued[u];
  }
  return out;
}

Json place(const Analysis& a, Place p) {
  return p < 0 ? Json() : Json(place_name(a.listing.places[p]));
}

Json location(const SourceLoc& where) { return where.known() ? Json(place_name(where)) : Json(); }

void add_cost(Json& out, const Cost& cost) {
  out["cycles"] = cost.cycles;
  out["empty_cycles"] = cost.stalls;
  out["run_cycles"] = cost.run_cycles;
  out["run_empty_cycles"] = cost.run_stalls;
  out["bundles"] = cost.bundles;
  out["instructions"] = cost.instructions;
  out["spills"] = cost.spills;
  out["fills"] = cost.fills;
  out["units"] = units(cost.issued);
}

Json slot_list(const Analysis& a) {
  Json out = Json::array();
  for (int u = 1; u < kUnits; ++u) {
    const Unit unit = static_cast<Unit>(u);
    const auto issued = static_cast<double>(a.total.issued[u]);
    out.push_back({{"unit", unit_name(unit)},
                   {"issued", a.total.issued[u]},
                   {"slots", slot_capacity(unit)},
                   {"use", issued / (slot_capacity(unit) * a.total.cycles)}});
  }
  return out;
}

Json line_list(const Report& r) {
  Json out = Json::array();
  for (const LineCost& line : r.analysis.lines) {
    Json entry = {{"location", location(line.where)}};
    add_cost(entry, line.cost);
    if (r.code) {
      int64_t bundles = 0;
      for (const LineCost& code : r.code->lines) {
        if (code.where == line.where) bundles = code.cost.bundles;
      }
      entry["code_bundles"] = bundles;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

void add_range(Json& out, const Analysis& a, int begin, int end) {
  out["first"] = a.listing.bundles[begin].address;
  out["last"] = a.listing.bundles[end - 1].address;
}

Json loop_list(const Analysis& a) {
  Json out = Json::array();
  for (size_t l = 0; l < a.structure.loops.size(); ++l) {
    const Loop& loop = a.structure.loops[l];
    Json entry = {{"location", place(a, loop.place)}};
    add_range(entry, a, loop.begin, loop.end);
    entry["depth"] = loop.depth;
    entry["parent"] = loop.parent < 0 ? Json() : Json(loop.parent);
    entry["trips"] = loop.trips ? Json(*loop.trips) : Json();
    if (!loop.trips) entry["why_unknown"] = loop.why_unknown;
    add_cost(entry, a.loops[l]);
    out.push_back(std::move(entry));
  }
  return out;
}

Json region_list(const Analysis& a) {
  Json out = Json::array();
  for (size_t i = 0; i < a.regions.size(); ++i) {
    const Region& region = a.structure.regions[i];
    Json entry = Json::object();
    add_range(entry, a, region.begin, region.end);
    entry["loop"] = region.loop < 0 ? Json() : Json(region.loop);
    entry["runs"] = region.runs ? Json(*region.runs) : Json();
    entry["ends"] = end_name(region.ends);
    add_cost(entry, a.regions[i]);
    out.push_back(std::move(entry));
  }
  return out;
}

Json instruction(const Analysis& a, int i) {
  if (i < 0) return {};
  const Instruction& instruction = a.listing.instructions[i];
  return {{"text", instruction.text},
          {"location", instruction.places.empty() ? Json() : place(a, instruction.places[0])}};
}

Json gap_list(const Analysis& a) {
  Json out = Json::array();
  for (const Stall& stall : a.stalls) {
    out.push_back({{"first", a.listing.bundles[stall.begin].address},
                   {"cycles", stall.cycles()},
                   {"cause", cause_name(stall.cause)},
                   {"waiting", instruction(a, stall.waiting)},
                   {"producer", instruction(a, stall.producer)}});
  }
  return out;
}

Json cause_list(const Analysis& a) {
  Json out = Json::array();
  for (int c = 0; c < kStallCauses; ++c) {
    if (a.stall_cycles[c] == 0) continue;
    out.push_back({{"cause", cause_name(static_cast<StallCause>(c))},
                   {"cycles", a.stall_cycles[c]},
                   {"run_cycles", a.run_stall_cycles[c]}});
  }
  return out;
}

Json path_list(const Report& r) {
  Json out = Json::array();
  for (const CriticalPath& path : r.critical_paths) {
    Json chain = Json::array();
    for (const ChainLink& link : path.chain) {
      chain.push_back({{"to_end", link.to_end},
                       {"instruction", link.instruction},
                       {"location", location(link.where)}});
    }
    Json entry = {{"region", path.region}, {"cycles", path.cycles}};
    if (path.begin >= 0) {
      add_range(entry, r.analysis, path.begin, path.end);
      entry["schedule_cycles"] = path.end - path.begin;
    }
    entry["chain"] = std::move(chain);
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Json to_json(const Report& r) {
  const Analysis& a = r.analysis;
  Json out = {{"format", 1},
              {"kernel", r.kernel},
              {"listing", r.has_schedule ? "schedule" : "code"},
              {"all_trips_known", a.all_trips_known}};
  add_cost(out, a.total);
  out["code_bundles"] = r.code ? Json(r.code->total.bundles) : Json();
  out["code_bytes"] = r.code ? Json(r.code_bytes()) : Json();
  out["vmem_bytes"] = r.vmem.bytes > 0 ? Json(r.vmem.bytes) : Json();
  out["vmem_spill_bytes"] = r.vmem.bytes > 0 ? Json(r.vmem.spill_bytes) : Json();
  out["estimated_cycles"] = r.estimated_cycles ? Json(*r.estimated_cycles) : Json();
  out["missing_addresses"] = a.listing.gaps;
  out["slots"] = slot_list(a);
  out["empty_causes"] = cause_list(a);
  out["lines"] = line_list(r);
  out["loops"] = loop_list(a);
  out["regions"] = region_list(a);
  out["gaps"] = r.has_schedule ? gap_list(a) : Json::array();
  out["critical_paths"] = path_list(r);
  return out;
}

}  // namespace gridless::bundles
