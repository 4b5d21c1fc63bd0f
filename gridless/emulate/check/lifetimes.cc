// R7 and R8: memory that is used before it belongs to the program, or after; and results that are
// not used at all.
#include <fmt/format.h>

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {

void Rules::lifetimes() {
  const int barrier = trace_.kernel->barrier_site();
  for (const Access& a : trace_.accesses) {
    if (a.copy < 0) continue;
    const auto& lives = trace_.lives[static_cast<size_t>(a.memory)];
    const int core = trace_.core_of(a.memory);
    if (static_cast<size_t>(a.life) >= lives.size()) continue;  // entries() reports it
    const Node end = lives[static_cast<size_t>(a.life)].end;
    if (!end.known() || order_.over(a, end)) continue;
    const int site = trace_.site_of(a.memory);
    const bool scoped = site > barrier;
    const bool window =
        site < barrier && trace_.kernel->arguments[static_cast<size_t>(site)].is_window;
    const std::string kind = scoped || window ? "use_after_scope" : "dma_in_flight_at_end";
    if (reported_.contains({kind, a.code.op, nullptr})) continue;
    if (!replay_.can_overtake(a, end)) continue;
    first(kind, a.code.op);
    const bool always = in_order_.can_overtake(a, end);
    Finding& f = add(always ? kind : "order_assumption", a.code,
                     fmt::format("a copy may still {} {} when {}", a.write ? "write" : "read",
                                 trace_.memory_name(a.memory),
                                 scoped   ? "the scope of that buffer ends"
                                 : window ? "the grid step ends"
                                          : fmt::format("core {} leaves the kernel", core)),
                     scoped ? "wait for the copy inside the scope that owns its buffers"
                            : "wait for every copy before the kernel ends",
                     {a.at.core, core});
    f.diagnostic.notes.push_back(describe(a));
    f.diagnostic.notes.push_back("why: " + why(a, end));
    if (!always) f.diagnostic.severity = Diagnostic::Severity::kWarning;
    show(f, a, end,
         scoped   ? "the end of the scope"
         : window ? "the end of the grid step"
                  : "the end of the kernel");
  }
  // Increments that may come after the scope of their semaphore.
  for (size_t i = 0; i < trace_.increments.size(); ++i) {
    const Increment& e = trace_.increments[i];
    const int site = trace_.semaphore_site_of(e.semaphore);
    if (site <= barrier || trace_.semaphores[static_cast<size_t>(e.semaphore)].left != 0) continue;
    const int core = trace_.owner(e.semaphore);
    const int32_t launch = e.semaphore / (trace_.cores * trace_.semaphores_per_core);
    const auto& lives = trace_.lives[static_cast<size_t>(trace_.memory(core, site) +
                                                         launch * trace_.cores * trace_.sites)];
    if (static_cast<size_t>(e.life) >= lives.size()) continue;
    const Node end = lives[static_cast<size_t>(e.life)].end;
    const auto id = static_cast<int32_t>(i);
    if (!end.known() || order_.before(order_.known(id), end)) continue;
    if (reported_.contains({"use_after_scope", e.code.op, nullptr})) continue;
    if (!replay_.can_miss(id, end)) continue;
    first("use_after_scope", e.code.op);
    Finding& f = add("use_after_scope", e.code,
                     fmt::format("what core {} adds to {} may come after the semaphore's scope",
                                 e.issue.core, trace_.semaphore_name(e.semaphore)),
                     "wait for it inside the scope", {core, e.issue.core});
    f.diagnostic.notes.push_back(
        fmt::format("{} at {} adds {}", e.code.op->info().name, trace_.where(e.code), e.amount));
    f.diagnostic.notes.push_back(
        "why: the waits in the scope can all be met without it; then the address may belong to "
        "somebody else");
    show(f, e, end, "the end of the scope");
  }
}

void Rules::never_written() {
  const std::vector<Argument>& arguments = trace_.kernel->arguments;
  std::vector<bool> written(arguments.size(), false);
  for (const Access& a : trace_.accesses) {
    const auto site = static_cast<size_t>(trace_.site_of(a.memory));
    if (a.write && site < written.size()) written[site] = true;
  }
  for (size_t s = 0; s < arguments.size(); ++s) {
    const Argument& arg = arguments[s];
    // What is aliased to an operand holds the operand's values.
    if (arg.role != Argument::Role::kOutput || arg.aliased >= 0 || written[s]) continue;
    Finding& f = add("uninitialised_read", {},
                     fmt::format("no core writes result {} ({}): the caller reads garbage",
                                 arg.tensor, arg.name),
                     "copy something into it, or leave the result out", {});
    f.diagnostic.severity = Diagnostic::Severity::kWarning;
    f.diagnostic.where = trace_.kernel->function->loc;
  }
  for (const UnwrittenBlock& b : trace_.unwritten) {
    const auto site = static_cast<size_t>(b.argument);
    const Argument& arg = arguments[site];
    if (!written[site] && arg.aliased < 0) continue;
    Finding& f =
        add("uninitialised_read", {},
            fmt::format("no step that has block {} of result {} ({}) stores anything in it",
                        ir::shape_str(b.block), arg.tensor, arg.name),
            arg.aliased < 0 ? "store to every block, or let no step have the block"
                            : "store to every block: a window of a result does not start with "
                              "what its operand holds",
            {b.core});
    f.diagnostic.severity = Diagnostic::Severity::kWarning;
    f.diagnostic.where = trace_.kernel->function->loc;
    f.diagnostic.notes.push_back(
        arg.aliased < 0
            ? "what was in the window's buffer goes to the result"
            : fmt::format("what was in the window's buffer goes over operand {}", arg.aliased));
  }
}

namespace {
constexpr const char* kBarrierHint =
    "pass a barrier with the peer (signal its barrier semaphore, wait on one's own) before the "
    "first remote copy or signal";
}

// The event `at` of another core must come after `begin`, from which on the address belongs to the
// program on core `owner`.
void Rules::too_early(Node begin, Node at, const Code& code, int owner, const std::string& target,
                      const std::string& details) {
  if (!begin.known() && !trace_.finished) return;
  if (reported_.contains({"missing_barrier", code.op, nullptr})) return;
  if (begin.known() && !replay_.can_precede(at, begin)) return;
  first("missing_barrier", code.op);
  std::string when;
  if (!begin.known()) {
    when = fmt::format("which core {} never allocates", owner);
  } else {
    when = fmt::format("before core {} has {}", owner,
                       what_ends(begin) == kEntry ? "entered the kernel"
                                                  : "left the scope that held the address before");
  }
  Finding& f =
      add("missing_barrier", code,
          fmt::format("core {} may write {}{} {}", at.core, target, begin.known() ? "" : ",", when),
          kBarrierHint, {at.core, owner});
  f.diagnostic.notes.push_back(details);
  f.diagnostic.notes.push_back(
      fmt::format("why: nothing that core {} does after {} is waited for before this", owner,
                  what_ends(begin)));
  if (!begin.known()) return show_always(f);
  if (trace_.kernel->call.device_barrier && what_ends(begin) == kEntry) {
    // No timing shows it: the barrier is not of the kernel, but it is there.
    f.diagnostic.severity = Diagnostic::Severity::kWarning;
    f.diagnostic.notes.push_back(
        "a kernel that communicates without a collective_id gets a barrier of all cores from the "
        "compiler, and rests on it");
    return;
  }
  show(f, begin, what_ends(begin), at, trace_.where(code));
}

void Rules::entries() {
  for (const Access& a : trace_.accesses) {
    const int core = trace_.core_of(a.memory);
    if (core == a.at.core) continue;
    const Node begin = ready(core, a.memory, a.life);
    if (begin.known() && order_.before(begin, a.at)) continue;  // no words needed
    too_early(begin, a.at, a.code, core, trace_.memory_name(a.memory), describe(a));
  }
  for (const Increment& e : trace_.increments) {
    const int core = trace_.owner(e.semaphore);
    if (core == e.issue.core || trace_.is_barrier(e.semaphore)) continue;
    const int32_t launch = e.semaphore / (trace_.cores * trace_.semaphores_per_core);
    const int32_t memory = trace_.memory(core, trace_.semaphore_site_of(e.semaphore)) +
                           launch * trace_.cores * trace_.sites;
    const Node begin = ready(core, memory, e.life);
    if (begin.known() && order_.before(begin, e.issue)) continue;
    too_early(begin, e.issue, e.code, core, trace_.semaphore_name(e.semaphore),
              fmt::format("{} on core {} at {} adds {}", e.code.op->info().name, e.issue.core,
                          trace_.where(e.code), e.amount));
  }
}

}  // namespace gridless::emulate
