// How tests talk to the mock plugin beside the C API: symbols that it exports, and environment
// variables for when it runs in another process.
//
//   MOCK_PJRT        how loading misbehaves (mock_pjrt.cc)
//   MOCK_SLICE       chips that the client has: "2x2x1"; default one
//   MOCK_HOSTS, MOCK_HOST, MOCK_EXCHANGE   how many hosts share them, which one this is, and a
//   folder
//                    in which processes of different hosts meet
//   MOCK_PLATFORM, MOCK_VERSION   what the client and topologies say they are
//   MOCK_HBM         bytes that fit on a device
//   MOCK_CORRUPT     copies to the host have a wrong byte
//   MOCK_INJECT      SLOT:CODE:SKIP, as MockInject
#pragma once

inline constexpr int kMockHang = -1;           // a code: the call, or the work, does not end
inline constexpr int kMockAsynchronous = 100;  // in place of a slot: the work behind an event

extern "C" {
// From now on call number `skip` (from 0) of the function in `slot` fails with `code`; code 0:
// none, and calls that hung fail.
void MockInject(int slot, int code, int skip);
// What the host did wrong since the last call: use after donation or destruction, double destroy,
// a wrong device, a host buffer that is too small. "" when nothing.
const char* MockViolations();
// Objects the host has not destroyed: clients, buffers, events, loaded executables.
int MockLive();
// Forgets them: after a hang the host leaves everything.
void MockForget();
// Launches that were executed.
int MockLaunches();
}
