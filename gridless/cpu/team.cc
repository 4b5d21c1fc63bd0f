#include "gridless/cpu/team.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "gridless/base/check.h"
#include "gridless/cpu/park.h"

namespace gridless::cpu {
namespace {

// The processors this process may use.
std::vector<int> allowed_processors() {
  cpu_set_t set;
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// A hint: where the system refuses it, the thread runs anywhere.
void pin_this_thread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

// A line of its own for every worker: workers poll while others are told.
struct alignas(64) Seat {
  Parker parker;
};

}  // namespace

struct Team::State {
  explicit State(int workers) : seats(static_cast<size_t>(workers)) {}

  void work_until_stopped(int worker) {
    uint64_t done = 0;
    while (true) {
      seats[static_cast<size_t>(worker)].parker.wait_until(
          [&] { return run.load(std::memory_order_seq_cst) != done; });
      ++done;
      if (stop) return;
      (*work)(worker);
      if (left.fetch_sub(1, std::memory_order_seq_cst) == 1) seats[0].parker.notify();
    }
  }

  // Everything written before is seen by the workers.
  void release() {
    run.fetch_add(1, std::memory_order_seq_cst);
    for (size_t i = 1; i < seats.size(); ++i) seats[i].parker.notify();
  }

  std::vector<Seat> seats;
  std::vector<std::thread> threads;
  const std::function<void(int)>* work = nullptr;
  bool stop = false;
  alignas(64) std::atomic<uint64_t> run = 0;  // how many runs have begun
  alignas(64) std::atomic<int> left = 0;      // workers that have not finished the present run
};

Team::Team(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Team>> Team::start(const TeamOptions& options) {
  GRIDLESS_CHECK(options.workers >= 1, "a team of {} workers", options.workers);
  std::unique_ptr<Team> team(new Team(std::make_unique<State>(options.workers)));
  State& state = *team->state_;
  const std::vector<int> processors = options.pin ? allowed_processors() : std::vector<int>{};
  for (int i = 1; i < options.workers; ++i) {
    const int processor =
        processors.empty() ? -1 : processors[static_cast<size_t>(i) % processors.size()];
    try {
      state.threads.emplace_back([&state, i, processor] {
        if (processor >= 0) pin_this_thread(processor);
        state.work_until_stopped(i);
      });
    } catch (const std::system_error& error) {  // the threads started so far end with `team`
      return machine_error("cannot start worker thread {} of {}: {}; ask for fewer workers", i,
                           options.workers, error.what());
    }
  }
  return team;
}

Team::~Team() {
  state_->stop = true;
  state_->release();
  for (std::thread& thread : state_->threads) thread.join();
}

void Team::run(const std::function<void(int worker)>& work) {
  State& state = *state_;
  state.work = &work;
  state.left.store(static_cast<int>(state.threads.size()), std::memory_order_relaxed);
  state.release();
  work(0);
  state.seats[0].parker.wait_until([&] { return state.left.load(std::memory_order_seq_cst) == 0; });
}

int Team::workers() const { return static_cast<int>(state_->seats.size()); }

}  // namespace gridless::cpu
