#include "lockstep/formats/byte_storage.h"

#include <algorithm>
#include <utility>

#include "lockstep/error.h"
#include "lockstep/formats/crc32.h"

namespace lockstep::formats {

ByteStorage::ByteStorage(ByteSource source, uint64_t offset, uint64_t size,
                         std::optional<Checksum> checksum)
    : checksum_(std::move(checksum)) {
  place_in(std::move(source), offset, size);
}

std::shared_ptr<const ByteStorage> ByteStorage::own(
    std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> all(*owner);
  return view(all, std::move(owner));
}

std::shared_ptr<const ByteStorage> ByteStorage::view(
    std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return std::make_shared<const ByteStorage>(
      ByteSource(bytes, std::move(owner)), 0, bytes.size());
}

void ByteStorage::place_in(ByteSource source, uint64_t offset, uint64_t size) {
  source.in_memory(offset, size);  // Throws when there is no such part.
  source_ = std::move(source);
  offset_ = offset;
  size_ = size;
}

bool ByteStorage::is_in_memory() const {
  return size_ == 0 || source_.in_memory(offset_, size_).data() != nullptr;
}

std::span<const std::byte> ByteStorage::bytes() const {
  if (is_in_memory()) return source_.in_memory(offset_, size_);
  const std::lock_guard lock(mutex_);
  if (!kept_) {
    std::vector<std::byte> bytes = source_.take(offset_, size_);
    if (checksum_) compare(crc32_of(bytes));
    kept_ = std::move(bytes);
  }
  return *kept_;
}

void ByteStorage::read(size_t offset, std::span<std::byte> to) const {
  if (offset > size_ || to.size() > size_ - offset) {
    throw FormatError("a tensor reaches outside its storage");
  }
  source_.read(offset_ + offset, to);
}

void ByteStorage::check() const {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  if (!checksum_) return;
  if (is_in_memory()) return compare(crc32_of(bytes()));
  std::vector<std::byte> piece(std::min(size_, kPieceBytes));
  uint32_t crc = 0;
  for (size_t done = 0; done < size_; done += piece.size()) {
    piece.resize(std::min(piece.size(), size_ - done));
    read(done, piece);
    crc = crc32_of(piece, crc);
  }
  compare(crc);
}

void ByteStorage::compare(uint32_t crc32) const {
  if (!checksum_ || checksum_->crc32 == crc32) return;
  throw FormatError("the bytes of '" + checksum_->name + "' are damaged (CRC)");
}

}  // namespace lockstep::formats
