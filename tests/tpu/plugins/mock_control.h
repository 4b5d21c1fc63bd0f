// How tests talk to the mock plugin beside the C API: symbols that it exports.
#pragma once

extern "C" {
// From now on call number `skip` (from 0) of the function in `slot` fails with `code`; code 0:
// none.
void MockInject(int slot, int code, int skip);
// What the host did wrong since the last call: use after donation or destruction, double destroy,
// a wrong device, a host buffer that is too small. "" when nothing.
const char* MockViolations();
// Objects the host has not destroyed: clients, buffers, events, loaded executables.
int MockLive();
// Launches that were executed.
int MockLaunches();
}
