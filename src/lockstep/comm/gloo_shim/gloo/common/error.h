// Shim: ProcessGroupGloo.hpp includes this header, which the wheel does not
// ship, and uses nothing of it.
#pragma once
