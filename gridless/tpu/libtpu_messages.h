// libtpu's error texts as Diagnostics: one sentence, the place in the kernel's source, notes, a
// hint.
#pragma once

#include <string_view>

#include "gridless/base/diagnostic.h"

namespace gridless::tpu {

// The first source position in an error text: `loc("file":line:column` or
// `file:line:column: error:`. libtpu writes "-" for a place in the body text itself; that file is
// given as `body_file`. An unknown location when the text names none.
SourceLoc find_location(std::string_view text, std::string_view body_file);

// `text` is what PJRT_Compile said about a program it refused. The message is its first sentence
// without the "Mosaic failed to compile ... HLO name ...:" preamble; the operation involved and the
// compiler's notes follow as notes. Kind: "capacity" when a memory of the chip is too small, else
// "invalid_ir".
Diagnostic diagnose(std::string_view text, std::string_view body_file);

}  // namespace gridless::tpu
