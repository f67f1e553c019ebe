// Colours and sizes that all plots share.
#pragma once

#include <array>

#include "lockstep/plot/drawing.h"

namespace lockstep::plot {

constexpr Color kInkColor = {.red = 32, .green = 33, .blue = 36};
constexpr Color kAxisColor = {.red = 95, .green = 99, .blue = 104};
constexpr Color kNoteColor = {.red = 110, .green = 115, .blue = 122};
constexpr Color kWarningColor = {.red = 197, .green = 34, .blue = 31};
constexpr Color kWhite = {.red = 255, .green = 255, .blue = 255};

// Okabe and Ito's colours, which the colour-blind tell apart, without the
// yellow that is faint on white.
constexpr Color kBlue = {.red = 0, .green = 114, .blue = 178};
constexpr Color kVermilion = {.red = 213, .green = 94, .blue = 0};
constexpr Color kGreen = {.red = 0, .green = 158, .blue = 115};
constexpr Color kPurple = {.red = 204, .green = 121, .blue = 167};
constexpr Color kOrange = {.red = 230, .green = 159, .blue = 0};
constexpr Color kSky = {.red = 86, .green = 180, .blue = 233};
constexpr Color kBlack = {.red = 0, .green = 0, .blue = 0};
inline constexpr std::array kCurveColors = {
    kBlue, kVermilion, kGreen, kPurple, kOrange, kSky, kBlack};

constexpr double kMargin = 28;
constexpr double kHeaderHeight = 62;
constexpr double kGap = 30;  // Between panels.

}  // namespace lockstep::plot
