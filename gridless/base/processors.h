// How many processors this process may keep busy.
#pragma once

namespace gridless {

// Physical cores among the processors this process may run on: two hardware threads of one core
// share its ports to memory and vector units, so a second worker there gains nothing. At least 1.
int physical_processors();

}  // namespace gridless
