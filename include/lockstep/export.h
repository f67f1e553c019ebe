// Symbols exported from the shared library. All others are hidden.
#pragma once

// A public function or class. Error types and classes with virtual functions
// need it too: their type information must be one and the same on both sides
// of the library's border.
#define LOCKSTEP_EXPORT __attribute__((visibility("default")))
