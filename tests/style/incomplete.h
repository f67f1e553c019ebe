// Does not compile alone: std::string is not declared.
// style.headers_check_can_fail expects that.
#pragma once

inline std::string text() { return {}; }
