#include "apps/step_tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <random>

#include "gridless/blocks/step_rows.h"

namespace gridless::apps {
namespace {

using blocks::kPageTokens;

struct Tables {
  std::vector<int32_t> rows, pages, keep;
};

// Where the first row of a sequence stands, `rows` of which follow.
int64_t position(int seed, int64_t context, int64_t rows, std::mt19937& random) {
  if (seed == 1) return context;
  if (seed == 2) return 0;
  std::uniform_int_distribution<int64_t> any(0, context);
  const int64_t at = any(random);
  if (seed > 3) return at;
  // So that the rows lie on both sides of the end of a page, or end with it.
  const int64_t page = at / kPageTokens * kPageTokens + kPageTokens;
  return std::clamp<int64_t>(page - (rows + 1) / 2, 0, context);
}

Tables make_tables(int64_t rows, int64_t slots, int64_t slot_pages, int64_t context, int64_t vocab,
                   int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  Tables t;
  t.pages.resize(static_cast<size_t>(slots * slot_pages));
  std::iota(t.pages.begin(), t.pages.end(), 0);
  if (seed > 3) std::ranges::shuffle(t.pages, random);
  t.keep.assign(static_cast<size_t>(slots), 0);
  t.rows.assign(static_cast<size_t>(blocks::kRowFields * rows), 0);
  const auto field = [&](int f, int64_t r) -> int32_t& {
    return t.rows[static_cast<size_t>(f * rows + r)];
  };
  const int64_t used = std::min(rows, slots), each = rows / used;
  int64_t first = 0;
  for (int64_t r = 0; r < used * each; ++r) {
    if (r % each == 0) first = position(seed, context, each, random);
    field(blocks::kRowToken, r) = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab));
    field(blocks::kRowSlot, r) = static_cast<int32_t>(r / each);
    field(blocks::kRowPosition, r) = static_cast<int32_t>(first + r % each);
    // The rows of a sequence are active up to some row.
    const bool active = seed == 2 ? r == 0 : seed <= 3 || random() % 4 != 0;
    const bool before = r % each == 0 || field(blocks::kRowActive, r - 1) != 0;
    field(blocks::kRowActive, r) = active && before ? 1 : 0;
  }
  return t;
}

// Those of a draft model's step (docs/launch_contract.md, "Taps and a draft model").
struct DraftTables {
  std::vector<int32_t> rows, fed, pages, first;
};

DraftTables make_draft_tables(int64_t block, int64_t fed, int64_t slot_pages, int64_t pages,
                              int64_t context, int64_t vocab, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  DraftTables t;
  for (int64_t i = 0; i < slot_pages; ++i) t.pages.push_back(static_cast<int32_t>(i % pages));
  const int64_t start = std::max<int64_t>(1, position(seed, context, fed, random));
  const int64_t most = std::min(fed, start);
  const auto new_tokens =
      seed <= 3 ? most : static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1));
  t.first = {static_cast<int32_t>(std::max<int64_t>(0, start - pages * kPageTokens))};
  const auto table = [](int64_t n, const auto& row) {
    std::vector<int32_t> out(static_cast<size_t>(blocks::kRowFields * n));
    for (int64_t r = 0; r < n; ++r) {
      const std::array<int64_t, blocks::kRowFields> fields = row(r);
      for (int f = 0; f < blocks::kRowFields; ++f)
        out[static_cast<size_t>(f * n + r)] = static_cast<int32_t>(fields[static_cast<size_t>(f)]);
    }
    return out;
  };
  using Fields = std::array<int64_t, blocks::kRowFields>;
  t.rows = table(block, [&](int64_t r) {
    const auto token = static_cast<int64_t>(random() % static_cast<uint64_t>(vocab));
    return Fields{token, 0, start + r, 1};
  });
  t.fed = table(fed, [&](int64_t r) {
    return r < new_tokens ? Fields{0, 0, start - new_tokens + r, 1} : Fields{};
  });
  return t;
}

}  // namespace

Result<CallBytes> step_tables(const Target& target, const ir::Call& call, int cores, int seed) {
  CallBytes out(call.operands.size());
  const auto find = [&](std::string_view name) -> size_t {
    const auto it = std::ranges::find(call.operands, name, &ir::CallArg::name);
    return static_cast<size_t>(it - call.operands.begin());
  };
  const size_t rows = find("rows"), pages = find("pages"), keep = find("keep"),
               embedding = find("embedding"), fed = find("context_rows"), first = find("first"),
               kv = find("kv");
  const bool is_draft = fed < out.size();
  const size_t needed = std::max({rows, pages, embedding, is_draft ? std::max(first, kv) : keep});
  if (needed >= out.size())
    return machine_error("{} does not follow the launch contract", target.name);
  const auto dim = [&](size_t operand, size_t d) { return call.operands[operand].type.shape()[d]; };
  const int64_t count = dim(rows, 1), slots = dim(pages, 0), slot_pages = dim(pages, 1);
  int64_t context = slot_pages * kPageTokens - count;
  if (const auto it = target.keys.find("context"); it != target.keys.end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), context);
  const auto put = [&](size_t operand, const std::vector<int32_t>& table) {
    const auto bytes = std::as_bytes(std::span(table));
    for (int c = 0; c < cores; ++c)
      out[operand].insert(out[operand].end(), bytes.begin(), bytes.end());
  };
  if (is_draft) {
    const DraftTables t = make_draft_tables(count, dim(fed, 1), slot_pages, dim(kv, 1), context,
                                            dim(embedding, 0), seed);
    put(rows, t.rows), put(pages, t.pages), put(fed, t.fed), put(first, t.first);
    return out;
  }
  const Tables t = make_tables(count, slots, slot_pages, context, dim(embedding, 0), seed);
  put(rows, t.rows), put(pages, t.pages), put(keep, t.keep);
  return out;
}

}  // namespace gridless::apps
