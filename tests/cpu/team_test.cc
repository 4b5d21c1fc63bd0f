// The worker team and the waiting between threads, on a quiet and on a crowded machine.
#include "gridless/cpu/team.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "gridless/cpu/park.h"

namespace gridless::cpu {
namespace {

std::unique_ptr<Team> team_of(int workers, bool pin = false) {
  Result<std::unique_ptr<Team>> team = Team::start({.workers = workers, .pin = pin});
  EXPECT_TRUE(team.has_value());
  return std::move(*team);
}

TEST(Team, RunsEveryWorkerOnceAndWaitsForAll) {
  for (const int workers : {1, 2, 5}) {
    for (const bool pin : {false, true}) {
      const std::unique_ptr<Team> team = team_of(workers, pin);
      EXPECT_EQ(team->workers(), workers);
      std::vector<int> calls(static_cast<size_t>(workers));  // no atomics: run() orders all
      for (int round = 1; round <= 300; ++round) {
        team->run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
        for (int c : calls) ASSERT_EQ(c, round);
      }
    }
  }
}

TEST(Team, CallerIsWorkerZero) {
  const std::unique_ptr<Team> team = team_of(3);
  std::vector<std::thread::id> ids(3);
  team->run([&](int worker) { ids[static_cast<size_t>(worker)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
}

TEST(Team, SleepsBetweenRuns) {
  const std::unique_ptr<Team> team = team_of(4);
  team->run([](int) {});
  rusage before, after;
  ::getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::getrusage(RUSAGE_SELF, &after);
  const auto micros = [](const rusage& u) {
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
  };
  // Spinning threads would use up to 600 ms here.
  EXPECT_LT(micros(after) - micros(before), 50000);
}

TEST(Semaphore, TakesWhatWasSignalled) {
  Parker parker;
  Semaphore semaphore(parker);
  EXPECT_FALSE(semaphore.try_take(1));
  semaphore.signal(3);
  semaphore.take(2);
  EXPECT_EQ(semaphore.count(), 1);
  EXPECT_FALSE(semaphore.reached(2));
  EXPECT_TRUE(semaphore.try_take(1));
  // A waiter that is long asleep wakes.
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    semaphore.signal(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    semaphore.signal(2);
  });
  semaphore.take(4);
  late.join();
  EXPECT_EQ(semaphore.count(), 0);
}

TEST(Semaphore, OneThreadWaitsForAnyOfSeveral) {
  Parker parker;
  Semaphore a(parker), b(parker);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    b.signal();
  });
  parker.wait_until([&] { return a.reached(1) || b.reached(1); });
  other.join();
  EXPECT_TRUE(b.try_take(1));
  EXPECT_FALSE(a.reached(1));
}

TEST(Semaphore, NoSignalIsLostAmongManySenders) {
  Parker parker;
  Semaphore semaphore(parker);
  constexpr int kThreads = 4, kSignals = 20000;
  std::vector<std::thread> senders;
  for (int i = 0; i < kThreads; ++i) {
    senders.emplace_back([&] {
      for (int j = 0; j < kSignals; ++j) semaphore.signal();
    });
  }
  for (int i = 0; i < kThreads * kSignals; ++i) semaphore.take(1);
  for (std::thread& t : senders) t.join();
  EXPECT_EQ(semaphore.count(), 0);
}

// Every worker signals the next and waits for the one before, `rounds` times: seconds.
double ring(Team& team, int rounds) {
  const int n = team.workers();
  std::vector<Parker> parkers(static_cast<size_t>(n));
  std::vector<std::unique_ptr<Semaphore>> semaphores;
  for (Parker& p : parkers) semaphores.push_back(std::make_unique<Semaphore>(p));
  const auto begin = std::chrono::steady_clock::now();
  team.run([&](int worker) {
    for (int i = 0; i < rounds; ++i) {
      semaphores[static_cast<size_t>((worker + 1) % n)]->signal();
      semaphores[static_cast<size_t>(worker)]->take(1);
    }
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Team, DoesNotCollapseOnACrowdedMachine) {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const std::unique_ptr<Team> team = team_of(processors + 1);
  std::atomic<bool> stop = false;
  std::vector<std::thread> crowd;
  for (int i = 0; i < 2 * processors; ++i) {
    crowd.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  }
  constexpr int kRounds = 1000;
  const double seconds = ring(*team, kRounds);
  stop = true;
  for (std::thread& t : crowd) t.join();
  // A round costs a worker a few wake-ups, each of which may wait for one time slice of a busy
  // neighbour (3 to 4 ms here; the test machine may be crowded by others as well, hence 20). A team
  // that spins uses up whole slices of its own for every one of those: several times as much.
  EXPECT_LT(seconds, kRounds * 0.020);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  std::printf("%d workers, crowded: %.1f us a round\n", team->workers(), 1e6 * seconds / kRounds);
}

}  // namespace
}  // namespace gridless::cpu
