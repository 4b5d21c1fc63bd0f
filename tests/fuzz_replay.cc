// main() for fuzz targets in builds without libFuzzer, so that every ctest run replays the seeds.
//
//   TARGET_fuzz PATH...    PATH is a seed directory (its files, sorted, each replayed as it is and
//   then
//                          with deterministic mutations) or one file (replayed alone: a
//                          reproducer).
//
// GRIDLESS_FUZZ_RUNS = mutations per seed (default 2000). The mutations depend only on the seeds'
// bytes and names, so a failure repeats. When the target dies, the input it died on is left in the
// working directory as crash-TARGET, and running the target on that file repeats the failure. Two
// kinds of failure that no sanitizer sees are caught here too: one input taking more than 20
// seconds, and one allocation of more than 256 MiB (a parser that believes a lying header).
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<uint8_t>;

constexpr unsigned kSecondsPerInput = 20;
[[maybe_unused]] constexpr size_t kLargestAllocation = size_t{256} << 20;

// What is being run, for the handlers: plain memory, because they may run in a broken process.
const uint8_t* current_data = nullptr;
size_t current_size = 0;
bool running = false;
char crash_file[256] = "crash-fuzz";

void say(const char* text) {
  size_t length = 0;
  while (text[length]) ++length;
  if (write(STDERR_FILENO, text, length) < 0) return;
}

void save_current_input() {
  if (!running) return;
  running = false;
  const int fd = open(crash_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  for (size_t done = 0; done < current_size;) {
    const ssize_t n = write(fd, current_data + done, current_size - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(fd);
  say("fuzz_replay: the failing input is in ");
  say(crash_file);
  say("\n");
}

void on_signal(int number) {
  if (number == SIGALRM) say("fuzz_replay: one input took more than 20 seconds\n");
  save_current_input();
  signal(number, SIG_DFL);
  raise(number);
}

// splitmix64: the same sequence on every machine, which std::mt19937 with distributions is not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(next() % n); }

 private:
  uint64_t state_;
};

void overwrite_integer(Bytes& b, Random& random) {
  static constexpr uint64_t kAwkward[] = {0,
                                          1,
                                          0x7f,
                                          0xff,
                                          0x7fff,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xfffffffffffffff0,
                                          0xffffffffffffffff};
  const size_t width = size_t{1} << random.below(4);
  if (b.size() < width) return;
  const size_t at = random.below(b.size() - width + 1);
  const uint64_t value = kAwkward[random.below(std::size(kAwkward))];
  for (size_t i = 0; i < width; ++i) b[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

void splice(Bytes& b, const Bytes& other, Random& random) {
  if (other.empty()) return;
  const size_t from = random.below(other.size());
  const size_t count = 1 + random.below(std::min<size_t>(other.size() - from, 256));
  const size_t at = random.below(b.size() + 1);
  const auto first = other.begin() + static_cast<ptrdiff_t>(from);
  b.insert(b.begin() + static_cast<ptrdiff_t>(at), first, first + static_cast<ptrdiff_t>(count));
}

void erase(Bytes& b, Random& random) {
  if (b.empty()) return;
  const size_t at = random.below(b.size());
  const size_t count = 1 + random.below(std::min<size_t>(b.size() - at, 64));
  b.erase(b.begin() + static_cast<ptrdiff_t>(at), b.begin() + static_cast<ptrdiff_t>(at + count));
}

Bytes mutate(const Bytes& seed, const std::vector<Bytes>& all, Random& random) {
  Bytes b = seed;
  // Mostly one or two changes: many at once only ever exercise the first check of a parser.
  const size_t changes = 1 + random.below(random.below(4) == 0 ? 8 : 2);
  for (size_t i = 0; i < changes; ++i) {
    // Headers sit at the front, so half of the changes go to the first 256 bytes.
    const size_t reach = random.below(2) ? b.size() : std::min<size_t>(b.size(), 256);
    switch (random.below(7)) {
      case 0:
        if (reach) b[random.below(reach)] ^= static_cast<uint8_t>(1u << random.below(8));
        break;
      case 1:
        if (reach) b[random.below(reach)] = static_cast<uint8_t>(random.next());
        break;
      case 2:
        overwrite_integer(b, random);
        break;
      case 3:
        b.resize(random.below(b.size() + 1));
        break;
      case 4:
        splice(b, all[random.below(all.size())], random);
        break;
      case 5:
        splice(b, b.empty() ? seed : Bytes(b), random);
        break;
      case 6:
        erase(b, random);
        break;
    }
  }
  return b;
}

void run_one(const Bytes& input) {
  // A copy of exactly this size on the heap, so that a read past the end is seen by asan.
  const Bytes exact(input.begin(), input.end());
  current_data = exact.data();
  current_size = exact.size();
  running = true;
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
  running = false;
}

Bytes read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

uint64_t hash(const Bytes& bytes, const std::string& name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (uint8_t c : bytes) h = (h ^ c) * 0x100000001b3u;
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

// Sanitizers bring their own operator new (and know more than this one).
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
void* operator new(size_t size) {
  if (running && size > kLargestAllocation) {
    say("fuzz_replay: one allocation of more than 256 MiB\n");
    abort();
  }
  if (void* p = malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
#endif
#endif

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (argc < 2) {
    fprintf(stderr, "usage: %s SEED_DIRECTORY_OR_FILE...\n", argv[0]);
    return 1;
  }
  const std::string target = fs::path(argv[0]).filename().string();
  snprintf(crash_file, sizeof crash_file, "crash-%s", target.c_str());
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) signal(number, on_signal);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_current_input);

  long runs = 2000;
  if (const char* text = getenv("GRIDLESS_FUZZ_RUNS")) runs = atol(text);
  std::vector<fs::path> names;
  std::vector<Bytes> seeds;
  size_t alone = 0;
  for (int i = 1; i < argc; ++i) {
    const fs::path path = argv[i];
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path))
        if (entry.is_regular_file()) names.push_back(entry.path());
    } else if (fs::exists(path)) {
      run_one(read_all(path));
      ++alone;
    } else {
      fprintf(stderr, "%s: no such seed directory or file: %s\n", target.c_str(), argv[i]);
      return 1;
    }
  }
  std::ranges::sort(names);
  for (const fs::path& name : names) seeds.push_back(read_all(name));
  if (seeds.empty() && alone == 0) {
    fprintf(stderr, "%s: no seeds: put a few small valid inputs there\n", target.c_str());
    return 1;
  }
  for (size_t i = 0; i < seeds.size(); ++i) {
    run_one(seeds[i]);
    Random random(hash(seeds[i], names[i].filename().string()));
    for (long run = 0; run < runs; ++run) run_one(mutate(seeds[i], seeds, random));
  }
  printf("%s: %zu seeds, %ld mutations each, %zu single files: no crash\n", target.c_str(),
         seeds.size(), runs, alone);
  return 0;
}
