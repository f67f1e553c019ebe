#include "lockstep/plot/svg.h"

#include <fmt/format.h>

#include <iterator>

#include "lockstep/base/utf8.h"
#include "lockstep/formats/base64.h"
#include "lockstep/formats/png.h"

namespace lockstep::plot {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : base::as_utf8(text)) {
    switch (letter) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default:
        // XML has no way to hold the others.
        const bool is_control = static_cast<unsigned char>(letter) < 0x20;
        result += is_control ? ' ' : letter;
    }
  }
  return result;
}

std::string paint(const char* what, const Color& color) {
  std::string text = fmt::format("{}=\"#{:02x}{:02x}{:02x}\"", what, color.red,
                                 color.green, color.blue);
  if (color.opacity < 1) {
    text += fmt::format(" {}-opacity=\"{:.3g}\"", what, color.opacity);
  }
  return text;
}

const char* anchor(Align align) {
  switch (align) {
    case Align::kLeft: return "start";
    case Align::kCenter: return "middle";
    case Align::kRight: return "end";
  }
  return "";
}

struct Writer {
  std::string text = {};

  void operator()(const Line& line) {
    auto out = std::back_inserter(text);
    fmt::format_to(out, "<polyline fill=\"none\" {} stroke-width=\"{:g}\"",
                   paint("stroke", line.color), line.width);
    text += " points=\"";
    for (const Point& point : line.points) {
      fmt::format_to(out, "{:.1f},{:.1f} ", point.x, point.y);
    }
    // Two points that are equal make a dot, one alone makes nothing.
    if (line.points.size() == 1) {
      fmt::format_to(out, "{:.1f},{:.1f}", line.points[0].x, line.points[0].y);
    }
    text += "\"/>\n";
  }

  void operator()(const Rectangle& box) {
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "{}/>\n",
        box.corner.x, box.corner.y, box.width, box.height,
        paint("fill", box.color));
  }

  void operator()(const Disc& disc) {
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" {}/>\n",
                        disc.center.x, disc.center.y, disc.radius,
                        paint("fill", disc.color));
  }

  void operator()(const Label& label) {
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:g}\" "
        "text-anchor=\"{}\" {}>{}</text>\n",
        label.at.x, label.at.y, label.size, anchor(label.align),
        paint("fill", label.color), escaped(label.text));
  }

  void operator()(const Image& image) {
    const std::string png = formats::encode_png(
        {.width = image.columns, .height = image.rows, .pixels = image.pixels});
    text += fmt::format(
        "<image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "style=\"image-rendering:pixelated\" "
        "href=\"data:image/png;base64,{}\"/>\n",
        image.corner.x, image.corner.y, image.width, image.height,
        formats::to_base64(png));
  }
};

}  // namespace

std::string to_svg(const Drawing& drawing) {
  Writer writer;
  writer.text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu Sans, Verdana, "
      "sans-serif\" stroke-linejoin=\"round\" stroke-linecap=\"round\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      drawing.width, drawing.height);
  for (const Shape& shape : drawing.shapes) std::visit(writer, shape);
  return std::move(writer.text) + "</svg>\n";
}

}  // namespace lockstep::plot
