// The child side of a compilation: a process of its own, because libtpu aborts on some programs,
// can hang on others, and allocates without limit. Started by WorkerProcess; speaks
// worker_protocol.h on file descriptor 0, which must be a socket; everything libtpu prints goes to
// stderr.
#pragma once

namespace gridless::tpu {

// Serves jobs until the socket closes. Returns the process's exit status.
int worker_main();

}  // namespace gridless::tpu
