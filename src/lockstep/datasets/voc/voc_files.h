// Where the files of a data set in the layout of Pascal VOC lie.
//
// Free functions without state: safe to call from several threads at once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::voc {

// The folder with ImageSets: `path` itself or VOC2012 in it. Throws ConfigError
// when neither is one.
std::filesystem::path find_voc_folder(const std::string& path);

// ImageSets/SegmentationAug/NAME.txt in that folder.
std::filesystem::path voc_list(const std::filesystem::path& folder,
                               const std::string& name);

// The names of images in a list: one per line, or paths of an image and its
// labels, "/JPEGImages/NAME.jpg /SegmentationClassAug/NAME.png". Throws IoError
// when it cannot be read, ConfigError when it is empty.
std::vector<std::string> read_voc_names(const std::filesystem::path& list);

// Files FOLDER/NAME+ENDING.
struct FilesOfNames {
  std::filesystem::path folder = {};
  std::string ending = ".png";
  std::string what = {};    // "scribbles (--train_path)"
  std::string remedy = {};  // A sentence, for the error.

  std::filesystem::path path(const std::string& name) const {
    return folder / (name + ending);
  }
};

// Throws ConfigError when the folder or a file is missing. Reads the folder
// once and opens no file.
void check_files_exist(const FilesOfNames& files,
                       const std::vector<std::string>& names);

}  // namespace lockstep::voc
