// The templates of value.h.
#pragma once

#include "lockstep/error.h"
#include "lockstep/value.h"

namespace lockstep {

template <typename Tensor>
template <typename Key, typename Wanted>
const BasicValue<Tensor>* BasicValue<Tensor>::find_key(
    const Wanted& key) const {
  const auto* entries = get_if<Dict>();
  if (entries == nullptr) return nullptr;
  for (const Entry& entry : *entries) {
    const auto* own = entry.key.template get_if<Key>();
    if (own != nullptr && *own == key) return &entry.value;
  }
  return nullptr;
}

template <typename Tensor>
template <typename Wanted>
BasicValue<Tensor>& BasicValue<Tensor>::make_key(const Wanted& key) {
  if (const BasicValue* found = find(key)) {
    return const_cast<BasicValue&>(*found);
  }
  LOCKSTEP_CHECK(is_null() || is<Dict>(),
                 "a key of a value that is not a dict");
  if (is_null()) data_ = Dict{};
  return std::get<Dict>(data_).emplace_back(Entry{key, {}}).value;
}

template <typename Tensor>
void BasicValue<Tensor>::push_back(BasicValue value) {
  LOCKSTEP_CHECK(is_null() || is<List>(),
                 "an item of a value that is not a list");
  if (is_null()) data_ = List{};
  std::get<List>(data_).push_back(std::move(value));
}

template <typename Tensor>
BasicView<Tensor> BasicValue<Tensor>::at(std::string_view key) const {
  return BasicView<Tensor>(*this).at(key);
}

template <typename Tensor>
BasicView<Tensor> BasicValue<Tensor>::at(int64_t key) const {
  return BasicView<Tensor>(*this).at(key);
}

template <typename Tensor>
template <typename T>
const T& BasicView<Tensor>::get(const char* expected) const {
  if (const T* found = node_->template get_if<T>()) return *found;
  std::string kind(kind_text(node_->data().index()));
  if (const auto* opaque = node_->template get_if<Opaque>()) {
    kind += " of class " + opaque->class_name;
  }
  throw_wrong_kind(path_, kind, expected);
}

template <typename Tensor>
const typename BasicValue<Tensor>::List& BasicView<Tensor>::as_list() const {
  const auto* tuple = node_->template get_if<typename Node::Tuple>();
  if (tuple != nullptr) return tuple->items;
  return get<typename Node::List>("a list");
}

template <typename Tensor>
double BasicView<Tensor>::as_double() const {
  if (node_->template is<int64_t>()) return static_cast<double>(as_int());
  return get<double>("a number");
}

template <typename Tensor>
template <typename Key>
BasicView<Tensor> BasicView<Tensor>::require(const Key& key,
                                             const std::string& name) const {
  as_dict();
  const Node* found = node_->find(key);
  if (found == nullptr) throw_missing(path_of(name));
  return BasicView(*found, path_of(name));
}

template <typename Tensor>
BasicView<Tensor> BasicView<Tensor>::at(std::string_view key) const {
  return require(key, std::string(key));
}

template <typename Tensor>
BasicView<Tensor> BasicView<Tensor>::at(int64_t key) const {
  const std::string name = std::to_string(key);
  if (node_->template is<typename Node::Dict>()) return require(key, name);
  const auto& items = as_list();
  if (key < 0 || static_cast<size_t>(key) >= items.size()) {
    throw_missing(path_of(name));
  }
  return BasicView(items[static_cast<size_t>(key)], path_of(name));
}

template <typename Tensor>
std::optional<BasicView<Tensor>> BasicView<Tensor>::find(
    std::string_view key) const {
  if (node_->find(key) == nullptr) return std::nullopt;
  return at(key);
}

template <typename Tensor>
std::optional<BasicView<Tensor>> BasicView<Tensor>::find(int64_t key) const {
  if (node_->find(key) == nullptr) return std::nullopt;
  return at(key);
}

}  // namespace lockstep
